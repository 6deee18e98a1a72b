import type { Engine, Query, Result } from "../engine/index.ts";
import type { Encoded, FailedResource, ResourceSet } from "../wire/encoded.ts";

/** Collects resources into a set, on top of another one. A generator that failed costs its own resource only. */
export function createCollector(base?: ResourceSet): {
  add(resource: Encoded): void;
  take(name: string, result: Result<Encoded>): void;
  fail(name: string, message: string): void;
  readonly set: ResourceSet;
} {
  const resources = new Map<string, Encoded>(base?.resources);
  const failed: FailedResource[] = [...(base?.failed ?? [])];
  const fail = (name: string, message: string): void => void failed.push({ name, message });
  return {
    add: (resource) => void resources.set(resource.name, resource),
    take: (name, result) => void (result.ok ? resources.set(name, result.value) : fail(name, result.error.message)),
    fail,
    set: { resources, failed },
  };
}

/** Equal sets: the same members by identity, which for encoded resources means the same content. Meant as `same` of queries that yield sets. */
export function sameResourceSet(a: ResourceSet, b: ResourceSet): boolean {
  if (a === b) return true;
  if (a.resources.size !== b.resources.size || a.failed.length !== b.failed.length) return false;
  for (const [name, resource] of a.resources) if (b.resources.get(name) !== resource) return false;
  return a.failed.every(({ name, message }, index) => name === b.failed[index]?.name && message === b.failed[index].message);
}

/** Keys of the configuration objects that a query result was made from. */
export function objectsBehind<K, V>(engine: Engine, query: Query<K, V>, key: K): readonly string[] {
  return engine.provenance(query, key).flatMap((ref) => (ref.table === "objects" && ref.read === "row" ? [ref.key] : []));
}
