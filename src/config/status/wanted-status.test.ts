import { assert, describe, expect, it } from "vitest";
import type { Problem } from "../problem.ts";
import type { ObjectReport, Reach } from "./object-report.ts";
import { statusOfOthers, type WantedStatus, wantedStatus } from "./wanted-status.ts";

const T1 = Date.UTC(2026, 0, 1, 12, 0, 0, 500);
const T2 = T1 + 60_000;

const problem = (code: Problem["code"], level: Problem["level"], message = "no"): Problem => ({
  code,
  level,
  object: { kind: "VirtualService", namespace: "shop", name: "cart" },
  path: ["spec", "http", 0, "route"],
  message,
});

const reach = (proxies: number, acknowledged: number, refusals: Reach["refusals"] = []): Reach => ({ proxies, acknowledged, refusals });

const report = (part: Partial<ObjectReport> & { readonly generation?: number } = {}): ObjectReport => ({
  key: "VirtualService/shop/cart",
  ref: { kind: "VirtualService", namespace: "shop", name: "cart" },
  head: { version: "v1", generation: part.generation ?? 3, createdAt: 0, revision: "" },
  state: "current",
  problems: [],
  reach: reach(1, 1),
  ...part,
});

function written(one: ObjectReport, previous?: unknown, now = T1): WantedStatus {
  const wanted = wantedStatus(one, previous, now);
  assert(wanted !== undefined, "nothing is to be written");
  return wanted;
}

const found = (status: WantedStatus, type: string) => status.conditions.find((one) => (one as { type: string }).type === type);

describe("the status of an object", () => {
  it("says that it is valid and that all proxies have it", () => {
    const status = written(report());
    expect(status).toMatchObject({ observedGeneration: 3, validationMessages: [] });
    expect(found(status, "Accepted")).toMatchObject({ status: "True", reason: "Valid", observedGeneration: 3 });
    expect(found(status, "Reconciled")).toMatchObject({
      status: "True",
      reason: "Acknowledged",
      message: "1/1 connected proxies have acknowledged generation 3",
      lastTransitionTime: "2026-01-01T12:00:00Z",
    });
  });

  it("is not written again while nothing is news, whoever comes and goes", () => {
    const status = written(report());
    for (const now of [reach(1, 1), reach(2, 1), reach(5, 5), reach(0, 0)])
      expect(wantedStatus(report({ reach: now }), status, T2)).toBeUndefined();
  });

  it("is the same for readers who write 64 bits as text and leave out what is empty", () => {
    const status = written(report());
    const conditions = status.conditions.map((one) => {
      const { message, observedGeneration, ...rest } = one as { message: string; observedGeneration: number };
      return { observedGeneration: String(observedGeneration), ...rest, ...(message !== "" && { message }) };
    });
    expect(wantedStatus(report(), { conditions, observedGeneration: "3" }, T2)).toBeUndefined();
  });

  it("turns with the generation, and keeps the time of what did not turn", () => {
    const before = written(report());
    const waiting = written(report({ generation: 4, reach: reach(3, 1) }), before, T2);
    expect(found(waiting, "Accepted")).toMatchObject({ status: "True", observedGeneration: 4, lastTransitionTime: "2026-01-01T12:00:00Z" });
    expect(found(waiting, "Reconciled")).toMatchObject({
      status: "False",
      reason: "InProgress",
      message: "1/3 connected proxies have acknowledged generation 4",
      lastTransitionTime: "2026-01-01T12:01:00Z",
    });
    const further = written(report({ generation: 4, reach: reach(3, 2) }), waiting, T2 + 60_000);
    expect(found(further, "Reconciled")).toMatchObject({ reason: "InProgress", lastTransitionTime: "2026-01-01T12:01:00Z" });
    const done = written(report({ generation: 4, reach: reach(3, 3) }), further, T2 + 120_000);
    expect(found(done, "Reconciled")).toMatchObject({ status: "True", lastTransitionTime: "2026-01-01T12:03:00Z" });
  });

  it("says of an invalid one where and why, what holds in its place, and that it is not sent", () => {
    const one = report({
      state: "stale",
      problems: [problem("field.required", "error", "must be set"), problem("field.deprecated", "warning")],
    });
    const status = written(one);
    expect(found(status, "Accepted")).toMatchObject({
      status: "False",
      reason: "Invalid",
      message: "spec.http[0].route: must be set; the last good version of it stays in force",
    });
    expect(found(status, "Reconciled")).toMatchObject({ status: "False", reason: "NotAccepted" });
    expect(status.validationMessages).toEqual([
      { type: { name: "field.required", code: "field.required" }, level: "ERROR" },
      { type: { name: "field.deprecated", code: "field.deprecated" }, level: "WARNING" },
    ]);
    expect(found(written(report(), status, T2), "Accepted")).toMatchObject({ status: "True", lastTransitionTime: "2026-01-01T12:01:00Z" });
    expect(written(report(), status, T2).validationMessages).toEqual([]);
  });

  it("warns of what has no effect, and is accepted all the same", () => {
    const status = written(report({ problems: [problem("reference.host", "warning", "no service has the host")] }));
    expect(found(status, "Accepted")).toMatchObject({
      status: "True",
      reason: "Warnings",
      message: "spec.http[0].route: no service has the host",
    });
  });

  it("names proxies that refused it and why, also when others had it before", () => {
    const refusals = Array.from({ length: 8 }, (_, index) => ({ proxy: `p${index}.shop`, resource: "LDS a", error: "x".repeat(2_000) }));
    const status = written(report({ reach: reach(9, 1, refusals) }), written(report()), T2);
    const { message } = found(status, "Reconciled") as { message: string };
    expect(found(status, "Reconciled")).toMatchObject({ status: "False", reason: "Rejected" });
    expect(message).toMatch(/^p0\.shop rejected LDS a: x{299}…; p1\.shop/);
    expect(message).toMatch(/; and 3 more; 1\/9 connected proxies have acknowledged generation 3$/);
    expect(found(written(report({ reach: reach(9, 9) }), status, T2), "Reconciled")).toMatchObject({ status: "True" });
  });

  it("does not know how far it is where no proxy is connected, or where that is not followed", () => {
    expect(found(written(report({ reach: reach(0, 0) })), "Reconciled")).toMatchObject({ status: "Unknown", reason: "NoProxies" });
    expect(found(written(report({ reach: undefined }), written(report())), "Reconciled")).toBeUndefined();
  });

  it("says of one that a file shadows that it is not used", () => {
    expect(found(written(report({ state: "shadowed" })), "Accepted")).toMatchObject({ status: "False", reason: "Shadowed" });
  });

  it("leaves what others wrote as and where it is", () => {
    const theirs = { type: "WaypointBound", status: "True", extra: { a: 1 } };
    const analysis = { type: { name: "ReferencedResourceNotFound", code: "IST0101" }, level: "ERROR" };
    const before = { conditions: [theirs], validationMessages: [analysis], addresses: [{ value: "240.240.0.1" }] };
    const first = written(report({ problems: [problem("field.host", "error")] }), before);
    expect(first.conditions[0]).toEqual(theirs);
    expect(first.validationMessages[0]).toEqual(analysis);
    const later = { type: "Later", status: "True" };
    const second = written(report(), { ...first, conditions: [...first.conditions, later] }, T2);
    expect(second.conditions.map((one) => (one as { type: string }).type)).toEqual(["WaypointBound", "Accepted", "Reconciled", "Later"]);
    expect(statusOfOthers({ ...before, ...first, phase: "x" })).toEqual({ conditions: [theirs], addresses: before.addresses, phase: "x" });
  });
});
