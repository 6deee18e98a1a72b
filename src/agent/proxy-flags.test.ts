import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FLAGS_WITHOUT_EFFECT, readProxyFlags } from "./proxy-flags.ts";

const variablesOf = (...args: readonly string[]) => readProxyFlags(args).variables;

describe("flags of an injected proxy", () => {
  it("are understood as variables", () => {
    const injected = [
      "--domain",
      "shop.svc.cluster.local",
      "--proxyLogLevel=warning",
      "--proxyComponentLogLevel=misc:error",
      "--log_output_level=default:info",
    ];
    expect(variablesOf(...injected)).toEqual({
      PROXY_DOMAIN: "shop.svc.cluster.local",
      PROXY_LOG_LEVEL: "warning",
      PROXY_COMPONENT_LOG_LEVEL: "misc:error",
      ISTIO_LOG_LEVEL: "info",
    });
    const more = [
      "--log_as_json",
      "--concurrency",
      "2",
      "--log_output_level=xds:debug,all:warn",
      "--stsPort=15463",
      "--serviceCluster=web",
    ];
    expect(variablesOf(...more)).toEqual({
      ISTIO_LOG_AS_JSON: "true",
      PROXY_CONCURRENCY: "2",
      ISTIO_LOG_LEVEL: "warn",
      PROXY_SERVICE_CLUSTER: "web",
    });
  });

  it("divide Envoy's levels into the one of all and those of its parts", () => {
    expect(variablesOf("--proxyLogLevel=info,misc:error,rbac:debug", "--proxyComponentLogLevel=misc:warn")).toEqual({
      PROXY_LOG_LEVEL: "info",
      PROXY_COMPONENT_LOG_LEVEL: "misc:error,rbac:debug",
    });
    expect(variablesOf("--proxyLogLevel=rbac:debug")).toEqual({ PROXY_COMPONENT_LOG_LEVEL: "rbac:debug" });
    expect(variablesOf("--proxyLogLevel=warn")).toEqual({ PROXY_LOG_LEVEL: "warning" });
  });

  it("may stand before what the proxy is, behind it, or alone", () => {
    const tables = [
      ["proxy", "router"],
      ["--log_as_json", "proxy", "router"],
      ["router", "--vklog", "2"],
      ["--vklog=2", "router"],
    ];
    for (const words of tables) expect(readProxyFlags(words).type, words.join(" ")).toBe("router");
    for (const words of [[], ["proxy"], ["--profiling=false"], ["proxy", "--log_rotate_max_size", "1"]])
      expect(readProxyFlags(words).type, words.join(" ")).toBe("sidecar");
  });

  it("may have the value of a switch", () => {
    expect(variablesOf("--log_as_json=true", "--profiling=true")).toEqual({ ISTIO_LOG_AS_JSON: "true" });
    expect(variablesOf("--log_as_json=false")).toEqual({});
  });

  it("are refused where nobody knows them", () => {
    expect(() => readProxyFlags(["--nosuch"])).toThrow(/--nosuch/);
    expect(() => readProxyFlags(["ztunnel"])).toThrow(/"ztunnel" is not understood/);
    expect(() => readProxyFlags(["router", "--log_as_json", "sidecar"])).toThrow(/"sidecar" is not understood/);
  });

  it("are documented where they change nothing", () => {
    const page = readFileSync("docs/agent.md", "utf8");
    for (const name of FLAGS_WITHOUT_EFFECT) expect(page).toContain(`\`--${name}\``);
  });
});
