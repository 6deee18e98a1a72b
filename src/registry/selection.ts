import { type Labels, labelPairs } from "../base/labels.ts";
import { type ConfigObject, clusterOfKey, inCluster } from "../config/object.ts";
import type { Table } from "../engine/index.ts";

/** Where workloads are looked for: in this control plane's cluster (`""`), in one other (`@west`), or in all others (`@`). */
export type Among = "" | `@${string}`;

/**
 * Keys of the workloads of one kind in a namespace that carry all labels of a selector, sorted. Only names are read, through the index of
 * labels: a workload that changes otherwise, or one that shares no label with the selector, re-runs nothing.
 */
export function selectedKeys(
  objects: Table<ConfigObject>,
  kind: "Pod" | "WorkloadEntry",
  { namespace, selector, among = "" }: { readonly namespace: string; readonly selector: Labels; readonly among?: Among },
): readonly string[] {
  const pairs = labelPairs(selector);
  if (pairs.length === 0) return objects.keys("kindNamespace", `${kind}/${namespace}`).filter((key) => isAmong(key, among));
  const [first = [], ...others] = pairs.map((pair) => objects.keys("label", `${kind}/${namespace}/${pair}${among}`));
  const sets = others.map((keys) => new Set(keys));
  return first.filter((key) => sets.every((set) => set.has(key)));
}

function isAmong(key: string, among: Among): boolean {
  const cluster = clusterOfKey(key);
  return among === "@" ? cluster !== "" : inCluster(cluster) === among;
}

/** Keys of the Services or ServiceEntries of a namespace, in this cluster (`""`) or one other (`@west`), whose selector may take a workload with these labels; the caller checks the rest of it. */
export function selectorKeys(
  objects: Table<ConfigObject>,
  kind: "Service" | "ServiceEntry",
  { namespace, labels, among }: { readonly namespace: string; readonly labels: Labels; readonly among: Among },
): readonly string[] {
  const slots = ["*", ...labelPairs(labels)];
  return slots.flatMap((slot) => objects.keys("selector", `${kind}/${namespace}/${slot}${among}`));
}
