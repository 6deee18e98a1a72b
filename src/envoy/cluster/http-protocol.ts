import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Any, durationFromMs } from "@bufbuild/protobuf/wkt";
import type {
  HttpProtocolOptionsSchema as CommonHttpOptionsSchema,
  Http2ProtocolOptionsSchema,
} from "../../gen/envoy/config/core/v3/protocol_pb.js";
import {
  type HttpProtocolOptions,
  HttpProtocolOptionsSchema,
} from "../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js";
import { anyOf } from "../../wire/encode.ts";
import type { HttpProtocolInput } from "./cluster-input.ts";

const EXTENSION = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/** The extension options of a cluster that say how HTTP is spoken to it. */
export function httpProtocolOptions(input: HttpProtocolInput): Record<string, Any> {
  const common = commonOptions(input);
  const options = create(HttpProtocolOptionsSchema, {
    upstreamProtocolOptions: versionOptions(input),
    ...(Object.keys(common).length > 0 && { commonHttpProtocolOptions: common }),
    ...((input.autoSni || input.autoSanValidation) && {
      upstreamHttpProtocolOptions: { autoSni: input.autoSni, autoSanValidation: input.autoSanValidation },
    }),
  });
  return { [EXTENSION]: anyOf(HttpProtocolOptionsSchema, options) };
}

function versionOptions(input: HttpProtocolInput): MessageInitShape<typeof HttpProtocolOptionsSchema>["upstreamProtocolOptions"] & object {
  const http2 = http2Options(input);
  switch (input.version) {
    case "http2":
      return { case: "explicitHttpConfig", value: { protocolConfig: { case: "http2ProtocolOptions", value: http2 } } };
    case "http1":
      return { case: "explicitHttpConfig", value: { protocolConfig: { case: "httpProtocolOptions", value: {} } } };
    case "downstream":
      return { case: "useDownstreamProtocolConfig", value: { httpProtocolOptions: {}, http2ProtocolOptions: http2 } };
  }
}

function http2Options({ maxConcurrentStreams, http2Keepalive }: HttpProtocolInput): MessageInitShape<typeof Http2ProtocolOptionsSchema> {
  return {
    ...(maxConcurrentStreams !== undefined && { maxConcurrentStreams }),
    ...(http2Keepalive !== undefined && {
      connectionKeepalive: {
        interval: http2Keepalive.intervalMs === undefined ? undefined : durationFromMs(http2Keepalive.intervalMs),
        timeout: durationFromMs(http2Keepalive.timeoutMs ?? DEFAULT_KEEPALIVE_TIMEOUT_MS),
      },
    }),
  };
}

/** Envoy demands a timeout with a keepalive; this is long enough for a busy peer and short enough to notice a dead one. */
const DEFAULT_KEEPALIVE_TIMEOUT_MS = 20_000;

function commonOptions(input: HttpProtocolInput): MessageInitShape<typeof CommonHttpOptionsSchema> {
  const { idleTimeoutMs, maxConnectionDurationMs, maxRequestsPerConnection } = input;
  return {
    ...(idleTimeoutMs !== undefined && { idleTimeout: durationFromMs(idleTimeoutMs) }),
    ...(maxConnectionDurationMs !== undefined && { maxConnectionDuration: durationFromMs(maxConnectionDurationMs) }),
    ...(maxRequestsPerConnection !== undefined && { maxRequestsPerConnection }),
  };
}

export type { HttpProtocolOptions };
