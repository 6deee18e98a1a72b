import { describe, expect, it } from "vitest";
import { bannerOf } from "./banner.ts";

const at = { host: "127.0.0.1", port: 8080 };
const plane = {
  ports: { grpc: undefined, secureGrpc: undefined, http: at, monitoring: undefined, webhooks: undefined },
  sources: { states: () => [], set: () => {}, attach: () => () => {}, loaded: true, stop: () => {} },
  debugToken: "not-for-others",
};
const lines = (env: NodeJS.ProcessEnv): string => bannerOf({ program: "istiod", baseDir: "/", env, plane }).join("\n");

describe("what is printed at ready", () => {
  it("has a link that opens the pages for the person who started it", () => {
    expect(lines({})).toContain("http://127.0.0.1:8080/debug/list?token=not-for-others");
  });

  it("keeps the token out of what a pod prints", () => {
    const printed = lines({ KUBERNETES_SERVICE_HOST: "10.0.0.1" });
    expect(printed).not.toContain("not-for-others");
    expect(printed).toContain("var/lib/istio/debug.token");
  });
});
