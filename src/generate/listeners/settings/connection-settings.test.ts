import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ProxyConfig_ConnectionSettingsSchema } from "../../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { connectionOf } from "./connection-settings.ts";

const settings = (json: JsonObject) => fromJson(ProxyConfig_ConnectionSettingsSchema, json);

describe("connection settings", () => {
  it("say nothing where nobody does, but for the node's own idle timeout", () => {
    expect(connectionOf(undefined, "client", undefined)).toEqual({ http: {}, bufferLimitBytes: undefined });
    expect(connectionOf(undefined, "client", 7_000).http).toEqual({ idleTimeoutMs: 7_000 });
  });

  it("go before the node's idle timeout", () => {
    expect(connectionOf(settings({ httpIdleTimeout: "3s" }), "server", 7_000).http).toEqual({ idleTimeoutMs: 3_000 });
  });

  it("have defaults for the edge, on gateways alone, that single settings replace", () => {
    const edge = settings({
      profile: "EDGE",
      httpMaxConcurrentStreams: 5,
      httpHeadersWithUnderscoresAction: "HEADERS_WITH_UNDERSCORES_ALLOW",
    });
    const own = { maxConcurrentStreams: 5, headersWithUnderscores: "allow" };
    expect(connectionOf(edge, "client", undefined)).toEqual({ http: own, bufferLimitBytes: undefined });
    const { http, bufferLimitBytes } = connectionOf(edge, "gateway", undefined);
    expect(http).toMatchObject({ ...own, requestTimeoutMs: 300_000, mergeSlashes: true, escapedSlashes: "unescapeAndRedirect" });
    expect(bufferLimitBytes).toBe(32_768);
  });

  it("stay within what Envoy takes", () => {
    const times = { httpIdleTimeout: "-1s", httpRequestTimeout: "-0.5s", httpStreamIdleTimeout: "315576000000s" };
    const odd = { ...times, httpMaxConcurrentStreams: 0, http2InitialStreamWindowSize: 7, http2InitialConnectionWindowSize: 70_000 };
    expect(connectionOf(settings(odd), "gateway", undefined).http).toEqual({
      streamIdleTimeoutMs: 9_223_372_035_000,
      initialStreamWindow: 65_535,
      initialConnectionWindow: 70_000,
    });
  });

  it("ignore numbers below zero", () => {
    expect(
      connectionOf(settings({ http2InitialStreamWindowSize: -1, listenerPerConnectionBufferLimitBytes: -1 }), "gateway", undefined),
    ).toEqual({
      http: {},
      bufferLimitBytes: undefined,
    });
  });
});
