import { describe, expect, it } from "vitest";
import type { KubeObject } from "../kube/resource-type.ts";
import type { EntryDocument, HealthCondition } from "../sources/registered/registration-board.ts";
import { entryChange, isAbandoned, newEntry, withHealth } from "./entry-change.ts";

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

const annotations = (controller: string, times: { readonly connected?: number; readonly disconnected?: number }) => ({
  "istio.io/autoRegistrationGroup": "carts",
  "istio.io/workloadController": controller,
  ...(times.connected !== undefined && { "istio.io/connectedAt": at(times.connected) }),
  ...(times.disconnected !== undefined && { "istio.io/disconnectedAt": at(times.disconnected) }),
});

const wanted = (times: Parameters<typeof annotations>[1], address = "10.0.0.7"): EntryDocument => ({
  apiVersion: "networking.istio.io/v1",
  kind: "WorkloadEntry",
  metadata: {
    name: "carts-10.0.0.7",
    namespace: "shop",
    creationTimestamp: at(0),
    labels: { app: "carts" },
    annotations: annotations("me", times),
  },
  spec: { address },
});

const held = (said: Readonly<Record<string, string>>): KubeObject => ({
  metadata: { name: "carts-10.0.0.7", namespace: "shop", resourceVersion: "7", labels: { app: "carts" }, annotations: said },
  spec: { address: "10.0.0.7" },
});

const outcome = (entry: EntryDocument | undefined, there: KubeObject | undefined) => {
  const change = entryChange(entry, there, "me");
  return change.do === "replace" ? change.object.metadata.annotations : change.do;
};

describe("the entry of a workload in a cluster", () => {
  it("is made for one that is connected, and for no other", () => {
    expect(outcome(wanted({ connected: 1 }), undefined)).toBe("create");
    expect(outcome(wanted({ disconnected: 1 }), undefined)).toBe("nothing");
    expect(outcome(undefined, undefined)).toBe("nothing");
  });

  it("belongs to whom its workload connected to last", () => {
    expect(outcome(wanted({ connected: 5 }), held(annotations("other", { connected: 3 })))).toEqual(annotations("me", { connected: 5 }));
    expect(outcome(wanted({ connected: 5 }), held(annotations("other", { connected: 6 })))).toBe("nothing");
    expect(outcome(wanted({ connected: 5 }), held(annotations("other", { disconnected: 4 })))).toEqual(annotations("me", { connected: 5 }));
    expect(outcome(wanted({ disconnected: 9 }), held(annotations("other", { connected: 6 })))).toBe("nothing");
    expect(outcome(wanted({ disconnected: 9 }), held(annotations("me", { connected: 6 })))).toEqual(annotations("me", { disconnected: 9 }));
  });

  it("is taken away by nobody else", () => {
    expect(outcome(undefined, held(annotations("me", { disconnected: 1 })))).toBe("delete");
    expect(outcome(undefined, held(annotations("other", { disconnected: 1 })))).toBe("nothing");
  });

  it("is left alone where somebody wrote it, and where it is as it should be", () => {
    expect(outcome(wanted({ connected: 1 }), held({}))).toBe("nothing");
    expect(outcome(undefined, held({}))).toBe("nothing");
    expect(outcome(wanted({ connected: 1 }), held(annotations("me", { connected: 1 })))).toBe("nothing");
    expect(outcome(wanted({ connected: 1 }), held(annotations("me", { connected: 8 })))).toBe("nothing");
  });

  it("follows its group, and keeps what others noted on it", () => {
    const there = held({ ...annotations("me", { connected: 1 }), note: "kept" });
    expect(entryChange(wanted({ connected: 1 }, "10.0.0.8"), there, "me")).toMatchObject({
      do: "replace",
      object: { metadata: { resourceVersion: "7", annotations: { note: "kept" } }, spec: { address: "10.0.0.8" } },
    });
  });

  it("is owned by its group, where that is in the cluster", () => {
    const owner = { metadata: { name: "carts", uid: "u-1" } };
    expect(newEntry(wanted({ connected: 1 }), owner).metadata).toMatchObject({
      ownerReferences: [{ kind: "WorkloadGroup", name: "carts", uid: "u-1", controller: true }],
    });
    expect(newEntry(wanted({ connected: 1 }), undefined).metadata).not.toHaveProperty("ownerReferences");
  });

  it("is abandoned after the grace period, or when nobody has said for long that it is connected", () => {
    const times = { graceMs: 10_000, lostMs: 60_000 };
    const abandoned = (said: Readonly<Record<string, string>>, second: number): boolean =>
      isAbandoned(held(said), { ...times, now: Date.parse(at(second)) });
    expect(abandoned(annotations("other", { disconnected: 1 }), 10)).toBe(false);
    expect(abandoned(annotations("other", { disconnected: 1 }), 12)).toBe(true);
    expect(abandoned(annotations("other", { connected: 1 }), 60)).toBe(false);
    expect(abandoned(annotations("other", { connected: 1 }), 62)).toBe(true);
    expect(abandoned({ "istio.io/disconnectedAt": at(1) }, 3600)).toBe(false);
  });
});

describe("the health of a workload", () => {
  const health = (second: number): HealthCondition => ({
    type: "Healthy",
    status: "True",
    lastProbeTime: at(second),
    lastTransitionTime: at(second),
  });
  const accepted = { type: "Accepted", status: "True" };

  it("takes the place of what was said before, beside the conditions of others", () => {
    expect(withHealth({ conditions: [health(1), accepted] }, health(2))).toEqual([accepted, health(2)]);
    expect(withHealth({ conditions: [accepted, health(2)] }, health(2))).toBeUndefined();
    expect(withHealth(undefined, health(2))).toEqual([health(2)]);
    expect(withHealth({ conditions: [accepted, health(2)] }, undefined)).toEqual([accepted]);
    expect(withHealth({ conditions: [accepted] }, undefined)).toBeUndefined();
  });
});
