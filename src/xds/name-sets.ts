import { contentHash } from "../base/hash.ts";
import type { NameSet } from "./provider.ts";

export const NO_NAMES: NameSet = { id: 0, names: new Set() };

/** Interns sets of names. Equal sets are one object for as long as somebody holds it; forgotten ones cost nothing. */
export interface NameSets {
  of(names: readonly string[]): NameSet;
  /** The set with some names added and others taken away; the same object where that changes nothing. */
  edit(set: NameSet, add: readonly string[], remove: readonly string[]): NameSet;
  /** Sets alive or not yet swept. */
  readonly size: number;
}

/** Beyond this the pool of strings is emptied: sharing starts anew, nothing is lost. */
const MAX_POOLED_NAMES = 200_000;

/** Requests of a thousand names on each of 500 streams must not cost 500 copies: of the sets, nor of the strings in different sets. */
export function createNameSets(): NameSets {
  const sets = new Map<string, WeakRef<NameSet>>();
  const swept = new FinalizationRegistry<string>((key) => {
    if (sets.get(key)?.deref() === undefined) sets.delete(key);
  });
  const pool = new Map<string, string>();
  let lastId = 0;

  const pooled = (name: string): string => {
    const known = pool.get(name);
    if (known !== undefined) return known;
    if (pool.size >= MAX_POOLED_NAMES) pool.clear();
    pool.set(name, name);
    return name;
  };
  /** Lists are shared by those who send the same (`RequestLists`). */
  const ofList = new WeakMap<readonly string[], NameSet>();
  const of = (names: readonly string[]): NameSet => {
    if (names.length === 0) return NO_NAMES;
    const set = ofList.get(names) ?? interned(names);
    ofList.set(names, set);
    return set;
  };
  const interned = (names: readonly string[]): NameSet => {
    const sorted = [...new Set(names)].sort();
    const key = contentHash(sorted.join("\n"));
    const known = sets.get(key)?.deref();
    if (known !== undefined) return known;
    lastId += 1;
    const set: NameSet = { id: lastId, names: new Set(sorted.map(pooled)) };
    sets.set(key, new WeakRef(set));
    swept.register(set, key);
    return set;
  };
  return {
    of,
    edit(set, add, remove) {
      if (set.names.size === 0) return remove.length === 0 ? of(add) : of(add.filter((name) => !remove.includes(name)));
      if (add.every((name) => set.names.has(name)) && !remove.some((name) => set.names.has(name))) return set;
      const next = new Set(set.names);
      for (const name of add) next.add(name);
      for (const name of remove) next.delete(name);
      return of([...next]);
    },
    get size() {
      return sets.size;
    },
  };
}
