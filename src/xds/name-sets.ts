import { contentHash } from "../base/hash.ts";
import type { NameSet } from "./provider.ts";

export const NO_NAMES: NameSet = { id: 0, names: new Set() };

/** Interns sets of names. Equal sets are one object for as long as somebody holds it; forgotten ones cost nothing. */
export interface NameSets {
  of(names: readonly string[]): NameSet;
  /** The set with some names added and others taken away; the same object where that changes nothing. */
  edit(set: NameSet, add: readonly string[], remove: readonly string[]): NameSet;
  /** The list with one more set. Grows with the names in it only, however often it is called: many sets become one. */
  gather(sets: readonly NameSet[], one: NameSet): readonly NameSet[];
  /** Sets alive or not yet swept. */
  readonly size: number;
}

/** Beyond this the pool of strings is emptied: sharing starts anew, nothing is lost. Clients choose how long names are. */
const MAX_POOLED_BYTES = 32 * 1024 * 1024;
/** What a string and its place in the pool take besides its characters. */
const POOLED_BYTES = 100;
/** So many sets are gathered one beside the other, as most who gather some have few. */
const MOST_GATHERED = 16;

/** Requests of a thousand names on each of 500 streams must not cost 500 copies: of the sets, nor of the strings in different sets. */
export function createNameSets(): NameSets {
  const sets = new Map<string, WeakRef<NameSet>>();
  const swept = new FinalizationRegistry<string>((key) => {
    if (sets.get(key)?.deref() === undefined) sets.delete(key);
  });
  const pool = new Map<string, string>();
  let pooledBytes = 0;
  let lastId = 0;

  const pooled = (name: string): string => {
    const known = pool.get(name);
    if (known !== undefined) return known;
    if (pooledBytes > MAX_POOLED_BYTES) {
      pool.clear();
      pooledBytes = 0;
    }
    pool.set(name, name);
    pooledBytes += POOLED_BYTES + 2 * name.length;
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
      if (set.names.size === 0 && remove.length === 0) return of(add);
      if (add.every((name) => set.names.has(name)) && !remove.some((name) => set.names.has(name))) return set;
      const next = new Set(set.names);
      for (const name of add) next.add(name);
      for (const name of remove) next.delete(name);
      return of([...next]);
    },
    gather(sets, one) {
      if (one.names.size === 0 || sets.includes(one)) return sets;
      return sets.length < MOST_GATHERED ? [...sets, one] : [of([...sets, one].flatMap(({ names }) => [...names]))];
    },
    get size() {
      return sets.size;
    },
  };
}
