import type { KubeObject } from "../kube/resource-type.ts";
import { type EntryDocument, type HealthCondition, REGISTRATION } from "../sources/registered/registration-board.ts";

/** What is to be done to the WorkloadEntry of a cluster. */
export type EntryChange =
  | { readonly do: "nothing" | "create" | "delete" }
  /** The object as it is to be, at the version that was looked at. */
  | { readonly do: "replace"; readonly object: KubeObject };

const { group, controller, connectedAt, disconnectedAt } = REGISTRATION;
const NOTHING: EntryChange = { do: "nothing" };

/**
 * What a replica has to do so that the entry of a workload that is, or was, connected to it is right for everybody, by Istio's rules: the entry belongs to whom the
 * workload connected to last, and to nobody but that one once it is disconnected. Entries that somebody wrote are left alone.
 */
export function entryChange(wanted: EntryDocument | undefined, held: KubeObject | undefined, self: string): EntryChange {
  if (held === undefined) return wanted?.metadata.annotations[connectedAt] === undefined ? NOTHING : { do: "create" };
  const there = held.metadata.annotations ?? {};
  if ((there[group] ?? "") === "" || held.metadata.deletionTimestamp !== undefined) return NOTHING;
  const isOurs = there[controller] === self;
  if (wanted === undefined) return isOurs ? { do: "delete" } : NOTHING;
  const since = wanted.metadata.annotations[connectedAt];
  if (!isOurs && (since === undefined || timeOf(since) < timeOf(there[connectedAt]))) return NOTHING;
  const { [connectedAt]: before, [disconnectedAt]: _, ...kept } = there;
  // It may have been said since that it is still there.
  const latest = since !== undefined && isOurs && before !== undefined && timeOf(before) > timeOf(since) ? { [connectedAt]: before } : {};
  const annotations = { ...kept, ...wanted.metadata.annotations, ...latest };
  const { labels } = wanted.metadata;
  const object = {
    ...held,
    metadata: { ...held.metadata, labels: { ...held.metadata.labels, ...labels }, annotations },
    spec: wanted.spec,
  };
  return isSame(object, held) ? NOTHING : { do: "replace", object };
}

/** Zero for none, and for what is no time. */
const timeOf = (text: string | undefined): number => Date.parse(text ?? "") || 0;

const isSame = (a: KubeObject, b: KubeObject): boolean => sorted([a.metadata, a.spec]) === sorted([b.metadata, b.spec]);

const sorted = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

/** An entry as it is created: with its group as owner, where that is an object of the cluster too. */
export function newEntry({ apiVersion, kind, metadata, spec }: EntryDocument, owner: KubeObject | undefined): KubeObject {
  const { creationTimestamp: _, ...rest } = metadata;
  const { uid } = owner?.metadata ?? {};
  const owners =
    owner === undefined || uid === undefined
      ? {}
      : { ownerReferences: [{ apiVersion, kind: "WorkloadGroup", name: owner.metadata.name, uid, controller: true }] };
  return { apiVersion, kind, metadata: { ...rest, ...owners }, spec };
}

/** The conditions of a status with this one in place of the other of its type; undefined where nothing changes. */
export function withHealth(status: unknown, health: HealthCondition | undefined): readonly unknown[] | undefined {
  const held = typeof status === "object" && status !== null && "conditions" in status ? status.conditions : undefined;
  const conditions: readonly unknown[] = Array.isArray(held) ? held : [];
  const others = conditions.filter((one) => !isHealth(one));
  if (health === undefined) return others.length === conditions.length ? undefined : others;
  const before = conditions.find(isHealth);
  return before?.lastProbeTime === health.lastProbeTime ? undefined : [...others, health];
}

/** What somebody said last of a workload's health. */
export const healthThere = (status: unknown): { readonly lastProbeTime?: unknown } | undefined =>
  typeof status === "object" && status !== null && "conditions" in status && Array.isArray(status.conditions)
    ? status.conditions.find(isHealth)
    : undefined;

const isHealth = (condition: unknown): condition is { readonly lastProbeTime?: unknown } =>
  typeof condition === "object" && condition !== null && "type" in condition && condition.type === "Healthy";

/**
 * Whether an entry that registered itself stands for nobody any more: its workload has been away for longer than it may, or whoever it was connected to went with
 * it and can no longer say so. Control planes say of connected ones every now and then that they still are.
 */
export function isAbandoned({ metadata }: KubeObject, { now, graceMs, lostMs }: { now: number; graceMs: number; lostMs: number }): boolean {
  const { annotations = {} } = metadata;
  if ((annotations[group] ?? "") === "") return false;
  const [since, until] = [annotations[connectedAt], annotations[disconnectedAt]];
  const [at, longest] = since === undefined ? [until, graceMs] : [since, lostMs];
  return at !== undefined && now - timeOf(at) > longest;
}
