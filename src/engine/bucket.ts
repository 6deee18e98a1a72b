import type { InputNode } from "./nodes.ts";
import { findKey, SortedKeys, sameItems } from "./sorted-keys.ts";

/** The list of an index key without rows: one instance, so that it never looks like a change. */
export const NOTHING: readonly never[] = Object.freeze([]);

/**
 * The rows under one index key (or all rows of a table): their keys, their values as one array, and the graph nodes
 * of those who read either. Arrays are patched, not rebuilt, when only the content of a row changed.
 */
export class Bucket<V> {
  readonly #rows: ReadonlyMap<string, V>;
  readonly #members = new SortedKeys();
  #values: readonly V[] | undefined;
  /** The keys `#values` was made for. */
  #valuesOf: readonly string[] = NOTHING;
  #touched: Set<string> | undefined;

  listNode: InputNode | undefined;
  keysNode: InputNode | undefined;

  constructor(rows: ReadonlyMap<string, V>) {
    this.#rows = rows;
  }

  get size(): number {
    return this.#members.size;
  }

  /** Nothing in it and nobody interested. */
  get idle(): boolean {
    return this.size === 0 && this.listNode === undefined && this.keysNode === undefined;
  }

  add(key: string): void {
    this.#members.add(key);
    this.touch(key);
  }

  remove(key: string): void {
    this.#members.remove(key);
  }

  /** Notes that the content of a member changed. */
  touch(key: string): void {
    if (this.#values === undefined) return;
    this.#touched ??= new Set();
    this.#touched.add(key);
  }

  keys(): readonly string[] {
    return this.#members.toArray();
  }

  values(): readonly V[] {
    const keys = this.keys();
    if (this.#values === undefined || keys !== this.#valuesOf) this.#values = this.#collect(keys);
    else if (this.#touched !== undefined) this.#values = this.#patch(this.#values, keys, this.#touched);
    this.#valuesOf = keys;
    this.#touched = undefined;
    return this.#values;
  }

  /** Frees the array of values, once nobody depends on it. */
  forgetValues(): void {
    this.#values = undefined;
    this.#valuesOf = NOTHING;
    this.#touched = undefined;
  }

  #collect(keys: readonly string[]): readonly V[] {
    const values: V[] = [];
    for (const key of keys) {
      const value = this.#rows.get(key);
      if (value !== undefined) values.push(value);
    }
    if (this.#values !== undefined && sameItems(this.#values, values)) return this.#values;
    return values.length === 0 ? NOTHING : values;
  }

  #patch(values: readonly V[], keys: readonly string[], touched: ReadonlySet<string>): readonly V[] {
    const patched = values.slice();
    for (const key of touched) {
      const value = this.#rows.get(key);
      const at = findKey(keys, key);
      if (value !== undefined && at >= 0) patched[at] = value;
    }
    return sameItems(values, patched) ? values : patched;
  }
}
