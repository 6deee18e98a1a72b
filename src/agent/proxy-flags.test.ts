import { describe, expect, it } from "vitest";
import { readProxyFlags } from "./proxy-flags.ts";

describe("flags of an injected proxy", () => {
  it("are understood as variables", () => {
    const injected = [
      "--domain",
      "shop.svc.cluster.local",
      "--proxyLogLevel=warning",
      "--proxyComponentLogLevel=misc:error",
      "--log_output_level=default:info",
    ];
    expect(readProxyFlags(injected)).toEqual({
      PROXY_LOG_LEVEL: "warning",
      PROXY_COMPONENT_LOG_LEVEL: "misc:error",
      ISTIO_LOG_LEVEL: "info",
    });
    expect(readProxyFlags(["--log_as_json", "--concurrency", "2", "--log_output_level=xds:debug,all:warn", "--stsPort=15463"])).toEqual({
      ISTIO_LOG_AS_JSON: "true",
      ISTIO_CPU_LIMIT: "2",
      ISTIO_LOG_LEVEL: "warn",
    });
  });

  it("are refused where nobody knows them", () => {
    expect(() => readProxyFlags(["--nosuch"])).toThrow(/--nosuch/);
    expect(() => readProxyFlags(["router"])).toThrow(/router/);
  });
});
