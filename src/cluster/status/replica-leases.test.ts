import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { eventually } from "../../../test/support/wait.ts";
import { silentLog } from "../../base/log.ts";
import type { KubeObject } from "../../kube/resource-type.ts";
import { ReplicaLeases, type ReplicaLeasesOptions } from "./replica-leases.ts";
import type { ReplicaReport } from "./replica-report.ts";

const report = (proxies: number): ReplicaReport => ({ proxies, digests: { "": "d" }, open: {} });

const lease = (name: string, renewTime: string, text = JSON.stringify(report(2))): KubeObject => ({
  metadata: { name, namespace: "mesh", resourceVersion: renewTime, annotations: { "istiod.istio.io/status-report": text } },
  spec: { renewTime },
});

/** Leases of a namespace as they are listed, then as they change. */
async function begin(...listed: readonly KubeObject[]) {
  const clock = manualClock();
  const written: KubeObject[] = [];
  const deleted: string[] = [];
  let send: (object: KubeObject) => void = () => {};
  const client: ReplicaLeasesOptions["client"] = {
    async listEach(_type, _options, take) {
      for (const object of listed) take(object);
      return { continue: "", resourceVersion: "1" };
    },
    async *watch(_type, { signal }) {
      yield [];
      while (!signal.aborted) {
        yield await new Promise((resolve) => {
          send = (object) => resolve([{ type: "MODIFIED", object }]);
          signal.addEventListener("abort", () => resolve([]), { once: true });
        });
      }
    },
    patch: async (_type, _place, { body }) => {
      written.push(body as KubeObject);
      return body as KubeObject;
    },
    delete: async (_type, { name }) => void deleted.push(name ?? ""),
  };
  let heard = 0;
  const leases = new ReplicaLeases({ client, namespace: "mesh", holder: "Pod_1", clock, log: silentLog }, () => {
    heard += 1;
  });
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const running = leases.run(abort.signal);
  await eventually("they are read", () => leases.isReady);
  const change = async (object: KubeObject): Promise<void> => {
    const before = heard;
    send(object);
    await eventually("it is heard", () => heard > before);
  };
  const tell = (proxies: number): Promise<number> => leases.tell(report(proxies), abort.signal);
  const stop = async (): Promise<void> => {
    abort.abort();
    await running;
  };
  return { clock, leases, written, deleted, change, tell, stop };
}

describe("what replicas tell each other", () => {
  it("counts as long as they renew it, by our own clock, and is tidied up later", async () => {
    const { clock, leases, deleted, change } = await begin(lease("istiod-replica-b", "1"), lease("istiod-replica-c", "1", "?"));
    const names = (): readonly string[] => [...leases.others().keys()];
    expect(leases.others()).toEqual(new Map([["istiod-replica-b", report(2)]]));
    clock.advance(30_000);
    await change(lease("istiod-replica-b", "2"));
    clock.advance(30_000);
    expect(names()).toEqual(["istiod-replica-b"]);
    await change({ ...lease("istiod-replica-b", "2"), kind: "Lease" });
    clock.advance(6_000);
    expect(names()).toEqual([]);
    await leases.tidy(new AbortController().signal);
    expect(deleted).toEqual([]);
    clock.advance(600_000);
    await leases.tidy(new AbortController().signal);
    expect(deleted.sort()).toEqual(["istiod-replica-b", "istiod-replica-c"]);
  });

  it("is written when it is news, once a second at the most, and renewed every 10 s; it goes with the replica", async () => {
    const { clock, leases, written, deleted, change, tell, stop } = await begin();
    expect(await tell(1)).toBe(10_000);
    expect(await tell(2)).toBe(1_000);
    clock.advance(1_000);
    expect(await tell(2)).toBe(10_000);
    clock.advance(4_000);
    expect(await tell(2)).toBe(6_000);
    clock.advance(6_000);
    await tell(2);
    expect(written.map(({ metadata }) => metadata.annotations?.["istiod.istio.io/status-report"])).toEqual(
      [1, 2, 2].map((proxies) => JSON.stringify(report(proxies))),
    );
    const [{ metadata }] = written as [KubeObject];
    expect(metadata).toMatchObject({ name: "istiod-replica-pod-1", labels: { "istiod.istio.io/replica": "true" } });
    await change(lease("istiod-replica-pod-1", "1"));
    expect(leases.others().size).toBe(0);
    await stop();
    expect(deleted).toEqual(["istiod-replica-pod-1"]);
  });
});
