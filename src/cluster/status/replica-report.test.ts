import { describe, expect, it } from "vitest";
import type { ObjectReport, Reach } from "../../config/status/object-report.ts";
import { ReachedObjects } from "./reached-objects.ts";
import { type ReplicaReport, readReplicaReport, replicaReport, SharedReaches } from "./replica-report.ts";

const reach = (proxies: number, acknowledged: number, ...refusing: readonly string[]): Reach => ({
  proxies,
  acknowledged,
  refusals: refusing.map((proxy) => ({ proxy, resource: "LDS a", error: "no" })),
});

const object = (name: string, generation: number, how: Reach = reach(1, 1)): ObjectReport => ({
  key: `Sidecar/shop/${name}`,
  ref: { kind: "Sidecar", namespace: "shop", name },
  head: { version: "v1", generation, createdAt: 0, revision: "" },
  state: "current",
  problems: [],
  reach: how,
});

const ofRevision = (revision: string, report: ObjectReport): ObjectReport => ({ ...report, head: { ...report.head, revision } });

/** What a replica with these objects tells the others. */
const told = (proxies: number, ...objects: readonly ObjectReport[]): ReplicaReport => {
  const text = JSON.stringify(replicaReport({ proxies }, objects, new SharedReaches().hold(objects)));
  return readReplicaReport(text) ?? expect.fail("it cannot be read");
};

describe("reaches over several replicas", () => {
  it("count proxies of a replica that holds the same generations, whatever order it read them in", () => {
    const shared = new SharedReaches();
    const [a, b] = [object("a", 1), object("b", 3)];
    shared.hold([a, b]);
    shared.hear(new Map([["other", told(2, object("b", 3, reach(2, 2)), object("a", 1, reach(2, 2)))]]));
    expect(shared.of(a)).toEqual(reach(3, 3));
  });

  it("do not count those of a replica that has not read a generation, until it has", () => {
    const shared = new SharedReaches();
    shared.hold([object("a", 1), object("b", 1)]);
    const behind = told(2, object("a", 1), object("b", 1));
    shared.hear(new Map([["other", behind]]));
    const [a, b] = [object("a", 2), object("b", 1)];
    shared.hold([a, b]);
    shared.hear(new Map([["other", behind]]));
    expect([shared.of(a), shared.of(b)]).toEqual([reach(3, 1), reach(3, 3)]);
    shared.hear(new Map([["other", told(2, object("a", 2, reach(2, 1)), object("b", 1))]]));
    expect([shared.of(a), shared.of(b)]).toEqual([reach(3, 2), reach(3, 3)]);
    shared.hear(new Map([["other", told(2, object("a", 2), object("b", 1))]]));
    expect(shared.of(a)).toEqual(reach(3, 3));
  });

  it("believe a replica that is ahead only in what it had before and what it says of an object", () => {
    const shared = new SharedReaches();
    const [a, b] = [object("a", 1), object("b", 1)];
    shared.hold([a, b]);
    shared.hear(new Map([["other", told(1, a, b)]]));
    shared.hear(new Map([["other", told(1, object("a", 2), b)]]));
    expect([shared.of(a), shared.of(b)]).toEqual([reach(2, 2), reach(2, 2)]);
    shared.hear(new Map([["other", told(1, object("a", 2, reach(1, 0)), b)]]));
    expect(shared.of(a)).toEqual(reach(2, 1));
    shared.hear(new Map([["new", told(1, object("a", 2), b)]]));
    expect([shared.of(a), shared.of(b)]).toEqual([reach(2, 1), reach(2, 1)]);
  });

  it("name who refuses at any replica", () => {
    const shared = new SharedReaches();
    const a = object("a", 1, reach(1, 0, "p2.shop"));
    shared.hold([a]);
    shared.hear(new Map([["other", told(3, object("a", 1, reach(3, 2, "p1.shop")))]]));
    expect(shared.of(a)).toEqual(reach(4, 2, "p1.shop", "p2.shop"));
  });

  it("compare each revision on its own", () => {
    const shared = new SharedReaches();
    const [all, canary] = [object("all", 1), ofRevision("canary", object("canary", 1))];
    shared.hold([all, canary]);
    shared.hear(new Map([["stable", told(2, object("all", 1), ofRevision("stable", object("stable", 7, reach(2, 2))))]]));
    expect(shared.of(all)).toEqual(reach(3, 3));
  });

  it("are small however much is open, and claim nothing then", () => {
    const many = Array.from({ length: 5_000 }, (_, index) =>
      object(`o${index}`, 1, reach(9, 1, ...Array.from({ length: 9 }, (_one, at) => `p${at}`))),
    );
    const report = told(9, ...many);
    expect(report.digests).toEqual({});
    expect(JSON.stringify(report).length).toBeLessThan(250_000);
    const shared = new SharedReaches();
    const last = object("o4999", 1);
    shared.hold([last]);
    shared.hear(new Map([["other", report]]));
    expect(shared.of(last)).toEqual(reach(10, 1));
  });

  it("do without what cannot be read", () => {
    expect(["", "{", "{}", "[]", '{"proxies":"1"}'].map(readReplicaReport)).toEqual(Array(5).fill(undefined));
  });
});

describe("objects that all proxies have had", () => {
  const at = (generation: number) => object("a", generation);

  it("stay so whoever comes and goes, until they change or somebody refuses them", () => {
    const reached = new ReachedObjects();
    expect(reached.of(at(1), reach(2, 1))).toEqual(reach(2, 1));
    const all = reached.of(at(1), reach(2, 2));
    expect(reached.of(at(1), reach(3, 2))).toBe(all);
    expect(reached.of(at(1), reach(0, 0))).toBe(all);
    expect(reached.of(at(2), reach(3, 2))).toEqual(reach(3, 2));
    expect(reached.of(at(2), reach(3, 2, "p1"))).toEqual(reach(3, 2, "p1"));
    expect(reached.of(at(2), reach(3, 2))).toEqual(reach(3, 2));
  });

  it("are known from statuses that were written before", () => {
    const reached = new ReachedObjects();
    const status = { conditions: [{ type: "Reconciled", status: "True", observedGeneration: "4" }] };
    reached.find(
      new Map([
        ["Sidecar/shop/a", status],
        ["Sidecar/shop/b", undefined],
      ]),
    );
    expect(reached.of(at(4), reach(5, 1))).toEqual(reach(5, 5));
    expect(reached.of(object("b", 4), reach(5, 1))).toEqual(reach(5, 1));
  });
});
