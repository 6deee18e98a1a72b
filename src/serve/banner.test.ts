import { describe, expect, it } from "vitest";
import { type BannerOptions, bannerOf } from "./banner.ts";

const at = { host: "127.0.0.1", port: 8080 };
const plane = {
  ports: { grpc: undefined, secureGrpc: undefined, http: at, monitoring: undefined, webhooks: undefined },
  sources: { states: () => [], set: () => {}, attach: () => () => {}, rescan: () => {}, loaded: true, stop: () => {} },
  debugToken: "not-for-others",
};
const lines = (env: NodeJS.ProcessEnv, isTerminal = false): string =>
  bannerOf({ program: "istiod", baseDir: "/", env, isTerminal, plane }).join("\n");
const lineOf = (start: string, options: Partial<BannerOptions>): string =>
  bannerOf({ program: "istiod", baseDir: "/", env: {}, isTerminal: false, plane, ...options }).find((line) => line.startsWith(start)) ?? "";

describe("what is printed at ready", () => {
  it("has a link that opens the pages for the person who started it", () => {
    expect(lines({})).toContain("http://127.0.0.1:8080/debug?token=not-for-others");
  });

  it("keeps the token out of what a pod prints", () => {
    const printed = lines({ KUBERNETES_SERVICE_HOST: "10.0.0.1" });
    expect(printed).not.toContain("not-for-others");
    expect(printed).toContain("var/lib/istio/debug.token");
  });

  it("keeps it out of the journal, but not from somebody at a terminal that systemd started", () => {
    const env = { JOURNAL_STREAM: "8:1234" };
    expect(lines(env)).not.toContain("not-for-others");
    expect(lines(env)).toContain("var/lib/istio/debug.token");
    expect(lines(env, true)).toContain("not-for-others");
  });

  const callers: readonly [host: string, who: string][] = [
    ["127.0.0.1", "this machine only"],
    ["::1", "this machine only"],
    ["localhost", "this machine only"],
    ["", "a token is needed"],
    ["0.0.0.0", "a token is needed"],
  ];
  for (const [host, who] of callers) {
    it(`says who may call a plaintext port on ${host || "all addresses"}`, () => {
      const ports = { ...plane.ports, grpc: { host, port: 15_010 } };
      expect(lineOf("ports: ", { plane: { ...plane, ports } })).toContain(`xDS ${host}:15010 (${who}), `);
    });
  }

  it("names the directory as one types it", () => {
    expect(lineOf("try: ", { baseDir: process.cwd() })).toContain(" into etc/istio/conf, ");
    expect(lineOf("try: ", { baseDir: "/nowhere/at/all" })).toContain(" into /nowhere/at/all/etc/istio/conf, ");
  });
});
