import type { Engine, Query, Result } from "../engine/index.ts";
import type { Encoded, FailedResource, ResourceSet } from "../wire/encoded.ts";
import { stacked, unshared } from "../wire/stacked-resources.ts";
import type { GenerateContext } from "./context.ts";

/** Collects resources into a set. A generator that failed costs its own resource only. */
export function createCollector(): {
  add(resource: Encoded): void;
  take(name: string, result: Result<Encoded>): void;
  fail(name: string, message: string, standIn?: FailedResource["standIn"]): void;
  readonly set: ResourceSet;
} {
  const resources = new Map<string, Encoded>();
  const failed: FailedResource[] = [];
  const fail = (name: string, message: string, standIn?: FailedResource["standIn"]): void =>
    void failed.push({ name, message, ...(standIn !== undefined && { standIn }) });
  return {
    add: (resource) => void resources.set(resource.name, resource),
    take: (name, result) => void (result.ok ? resources.set(name, result.value) : fail(name, result.error.message)),
    fail,
    set: { resources, failed },
  };
}

/** Two sets as one, without copying the larger. Names do not overlap. */
export function layered(base: ResourceSet, top: ResourceSet): ResourceSet {
  if (top.resources.size === 0 && top.failed.length === 0) return base;
  return { resources: stacked([base.resources, top.resources]), failed: [...base.failed, ...top.failed] };
}

/** Equal sets: the same members by identity, which for encoded resources means the same content. Meant as `same` of queries that yield sets. */
export function sameResourceSet(a: ResourceSet, b: ResourceSet): boolean {
  if (a === b) return true;
  if (a.failed.length !== b.failed.length || !sameResources(a.resources, b.resources)) return false;
  return a.failed.every(({ name, message }, index) => name === b.failed[index]?.name && message === b.failed[index].message);
}

/** Maps with the same members by identity. */
export function sameResources(a: ResourceSet["resources"], b: ResourceSet["resources"]): boolean {
  const [inA, inB] = unshared(a, b);
  if (inA.size !== inB.size) return false;
  for (const [name, resource] of inA) if (inB.get(name) !== resource) return false;
  return true;
}

/** Keys of the configuration objects that a query result was made from. */
export function objectsBehind<K, V>(engine: Engine, query: Query<K, V>, key: K): readonly string[] {
  return engine.provenance(query, key).flatMap((ref) => (ref.table === "objects" && ref.read === "row" ? [ref.key] : []));
}

/** Kinds that services and endpoints are made from. Which of them one resource shows is known exactly from the service itself. */
const REGISTRY_KINDS: ReadonlySet<string> = new Set([
  "ServiceEntry",
  "WorkloadEntry",
  "WorkloadGroup",
  "Service",
  "Endpoints",
  "EndpointSlice",
  "Pod",
  "Node",
  "Namespace",
]);

/** Whether an object is something else than a part of the registry. */
export const isPolicy = (key: string): boolean => !REGISTRY_KINDS.has(key.slice(0, key.indexOf("/")));

/**
 * Keys of the policies that a query result was made from: rows it read, and members of the lists it read. Services are left out, because
 * what the registry read to make one (whatever else might claim its address, say) is not what a person asks for.
 */
export function policiesBehind<K, V>(
  { engine, inputs }: Pick<GenerateContext, "engine" | "inputs">,
  query: Query<K, V>,
  key: K,
): readonly string[] {
  const keys = engine.provenance(query, key).flatMap((ref): readonly string[] => {
    if (ref.table !== "objects") return [];
    if (ref.read === "list") return inputs.objects.keys(ref.index, ref.key);
    return ref.read === "row" ? [ref.key] : [];
  });
  return [...new Set(keys)].filter(isPolicy);
}
