import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../base/log.ts";
import { KubeError } from "../kube/kube-error.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";
import { hashOfRoots, keepRevocationConfigMaps, keepRootConfigMaps } from "./root-config-maps.ts";

const pem = (body: string): string => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;

/** A server with these namespaces and no ConfigMap yet; it refuses to write into some. */
function cluster(namespaces: readonly string[], refuses: readonly string[] = [], keep = keepRootConfigMaps) {
  const clock = manualClock();
  const written: { readonly namespace: string; readonly at: number; readonly object: KubeObject }[] = [];
  const tried: number[] = [];
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const client = {
    async listEach({ plural }: ResourceType, _options: object, take: (object: KubeObject) => void) {
      if (plural === "namespaces") for (const name of namespaces) take({ metadata: { name, resourceVersion: "1" } });
      return { continue: "", resourceVersion: "1" };
    },
    async *watch() {
      yield [];
      await new Promise((resolve) => ending.signal.addEventListener("abort", resolve));
    },
    async create(_type: ResourceType, object: KubeObject): Promise<KubeObject> {
      const namespace = object.metadata.namespace ?? "";
      if (refuses.includes(namespace)) {
        tried.push(clock.monotonic());
        throw new KubeError({ status: 500, reason: "InternalError", message: "not now" });
      }
      written.push({ namespace, at: clock.monotonic(), object });
      return object;
    },
    patch: () => Promise.reject(new Error("nothing is there to be patched")),
  };
  const revoked = { text: "" };
  const published = { roots: () => pem("aaaa"), revoked: () => revoked.text, selectors: () => [] };
  void keep({ client, namespaces: [], published, clock, log: silentLog, random: () => 1 }, ending.signal);
  const pass = async (ms: number): Promise<void> => {
    for (let step = 0; step < ms; step += 10) {
      clock.advance(10);
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    }
  };
  return { written, tried, revoked, pass };
}

describe("ConfigMaps with the roots", () => {
  it("are written at twenty a second", async () => {
    const { written, pass } = cluster(Array.from({ length: 50 }, (_, index) => `n${index}`));
    await pass(5_000);
    expect(new Set(written.map(({ namespace }) => namespace)).size).toBe(50);
    expect(written).toHaveLength(50);
    const first = written[0]?.at ?? 0;
    expect(written.filter(({ at }) => at < first + 1_000).length).toBeLessThanOrEqual(20);
  });

  it("that cannot be written are tried less and less often, and keep no other waiting", async () => {
    const { written, tried, pass } = cluster(["broken", "fine", "kube-public"], ["broken"]);
    await pass(30_000);
    expect(written.map(({ namespace }) => namespace)).toEqual(["fine"]);
    expect(tried.length).toBeGreaterThan(2);
    expect(tried.length).toBeLessThan(8);
  });
});

describe("ConfigMaps with lists of revoked certificates", () => {
  it("are written under Istio's name from when there is such a list, and not before", async () => {
    const { written, revoked, pass } = cluster(["shop", "kube-public"], [], keepRevocationConfigMaps);
    await pass(5_000);
    expect(written).toEqual([]);
    revoked.text = "a list";
    await pass(5_000);
    expect(written.map(({ object }) => object)).toEqual([
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "istio-ca-crl", namespace: "shop", labels: { "istio.io/config": "true" } },
        data: { "ca-crl.pem": "a list" },
      },
    ]);
  });
});

describe("hashOfRoots", () => {
  it("is the same for the same certificates, however they are written", () => {
    const [a, b] = [pem("aa\naa"), pem("bbbb")];
    expect(hashOfRoots(`# both\n${b}\n\n${a}${b}`)).toBe(hashOfRoots(`${pem("aaaa")}${b}`));
    expect(hashOfRoots(a)).not.toBe(hashOfRoots(b));
    expect(hashOfRoots("")).not.toBe(hashOfRoots(a));
  });
});
