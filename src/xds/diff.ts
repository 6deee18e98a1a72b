import { Interned } from "../base/interned.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";
import { unshared } from "../wire/stacked-resources.ts";

/** What turns one set of resources into another. */
export interface Diff {
  readonly changed: readonly Encoded[];
  readonly removed: readonly string[];
}

export const EMPTY_SET: ResourceSet = { resources: new Map(), failed: [] };
export const NO_DIFF: Diff = { changed: [], removed: [] };

export const isEmptyDiff = (diff: Diff): boolean => diff.changed.length === 0 && diff.removed.length === 0;

const diffs: PairMemo<Diff> = new WeakMap();

/**
 * The one comparison behind both variants. Remembered per pair: 500 streams that hold the same set and are offered the same set share one
 * difference, and so one response. Forgotten with the sets.
 */
export function diff(old: ResourceSet, next: ResourceSet): Diff {
  if (old === next) return NO_DIFF;
  return remember(diffs, [old, next], () => {
    const [before, after] = unshared(old.resources, next.resources);
    const changed = [...after.values()].filter((resource) => before.get(resource.name)?.version !== resource.version);
    const removed = [...before.keys()].filter((name) => !after.has(name));
    return { changed, removed };
  });
}

const unions: PairMemo<ResourceSet> = new WeakMap();

/** `next` together with what it would remove from `old`; `old` itself where nothing else changed. */
export function withoutRemovals(old: ResourceSet, next: ResourceSet): ResourceSet {
  const { changed, removed } = diff(old, next);
  if (removed.length === 0) return next;
  if (changed.length === 0) return old;
  return remember(unions, [old, next], () => {
    const resources = new Map(next.resources);
    for (const name of removed) {
      const kept = old.resources.get(name);
      if (kept !== undefined) resources.set(name, kept);
    }
    return { resources, failed: next.failed };
  });
}

/** As long as somebody holds them: which resources clients reject is theirs to say, and each choice is another set. */
const substitutions = new WeakMap<ResourceSet, Interned<ResourceSet>>();

/** The set with some resources replaced (or, by `undefined`, left out). Equal replacements in the same set give the same object. */
export function substitute(set: ResourceSet, replacements: ReadonlyMap<string, Encoded | undefined>): ResourceSet {
  if (replacements.size === 0) return set;
  const key = [...replacements]
    .map(([name, resource]) => `${name}\t${resource?.version ?? ""}`)
    .sort()
    .join("\n");
  const known = substitutions.get(set) ?? new Interned<ResourceSet>();
  substitutions.set(set, known);
  return known.of(key, () => {
    const resources = new Map(set.resources);
    for (const [name, resource] of replacements) {
      if (resource === undefined) resources.delete(name);
      else resources.set(name, resource);
    }
    return { resources, failed: set.failed };
  });
}

/** Values remembered for two objects, and forgotten with either. */
export type PairMemo<V, A extends object = ResourceSet, B extends object = A> = WeakMap<A, WeakMap<B, V>>;

export function remember<V, A extends object, B extends object>(memo: PairMemo<V, A, B>, [a, b]: readonly [A, B], compute: () => V): V {
  const inner = memo.get(a) ?? new WeakMap<B, V>();
  memo.set(a, inner);
  let value = inner.get(b);
  if (value === undefined) {
    value = compute();
    inner.set(b, value);
  }
  return value;
}
