import { Bucket, NOTHING } from "./bucket.ts";
import type { InputNode } from "./nodes.ts";
import { SortedKeys } from "./sorted-keys.ts";

/** Index keys of a row before and after a write. */
export interface IndexMove {
  readonly before: ReadonlySet<string>;
  readonly after: ReadonlySet<string>;
}

/** Where a row stands of which an index knows nothing, as most indexes do of most rows. */
const NO_PLACE: ReadonlySet<string> = new Set();

/** Few keys are looked through for repetitions sooner than a set is made of them. */
const MOST_LOOKED_THROUGH = 16;

/**
 * One named index of a table: index key → bucket, and the sorted set of index keys that have rows. Both are made for those who read: of ten thousand index
 * keys most have one row and no reader, and then the key of that row stands in place of the bucket.
 */
export class TableIndex<V> {
  readonly name: string;
  readonly #rows: ReadonlyMap<string, V>;
  /** The index keys of a row. May throw: to be asked before writing. */
  readonly keysOf: (value: V, key: string) => readonly string[];
  readonly #buckets = new Map<string, Bucket<V> | string>();
  /** Undefined until somebody asks. */
  #nonEmpty: SortedKeys | undefined;
  node: InputNode | undefined;

  constructor(name: string, rows: ReadonlyMap<string, V>, keysOf: (value: V, key: string) => readonly string[]) {
    this.name = name;
    this.#rows = rows;
    this.keysOf = keysOf;
  }

  /** Where a row stands before and after a write. Calls `keysOf`. */
  move(key: string, before: V | undefined, after: V | undefined): IndexMove {
    return { before: this.#place(key, before), after: this.#place(key, after) };
  }

  /** Follows the write of a new row, with its index keys; tells which nodes to mark. */
  insert(key: string, keys: readonly string[], mark: (node: InputNode | undefined) => void): void {
    if (keys.length > MOST_LOOKED_THROUGH) for (const at of new Set(keys)) this.#add(at, key, mark);
    else
      keys.forEach((at, place) => {
        if (keys.indexOf(at) === place) this.#add(at, key, mark);
      });
  }

  /** Follows a write; tells which nodes to mark. */
  apply(key: string, { before, after }: IndexMove, mark: (node: InputNode | undefined) => void): void {
    for (const at of before) {
      const stays = after.has(at);
      const held = this.#buckets.get(at);
      if (held === key) {
        if (!stays) this.#empty(at, mark);
        continue;
      }
      const bucket = this.bucket(at);
      if (stays) bucket.touch(key);
      else {
        bucket.remove(key);
        mark(bucket.keysNode);
        if (bucket.size === 0) this.#empty(at, mark);
      }
      mark(bucket.listNode);
    }
    for (const at of after) if (!before.has(at)) this.#add(at, key, mark);
  }

  /** The bucket of an index key, made if there is none: for those who will leave a row or a node in it. */
  bucket(at: string): Bucket<V> {
    const held = this.#buckets.get(at);
    if (typeof held === "object") return held;
    const bucket = new Bucket(this.#rows);
    if (held !== undefined) bucket.add(held);
    this.#buckets.set(at, bucket);
    return bucket;
  }

  values(at: string): readonly V[] {
    return this.#buckets.has(at) ? this.bucket(at).values() : NOTHING;
  }

  keys(at: string): readonly string[] {
    return this.#buckets.has(at) ? this.bucket(at).keys() : NOTHING;
  }

  indexKeys(): readonly string[] {
    if (this.#nonEmpty === undefined) {
      this.#nonEmpty = new SortedKeys();
      for (const [at, held] of this.#buckets) if (typeof held === "string" || held.size > 0) this.#nonEmpty.add(at);
    }
    return this.#nonEmpty.toArray();
  }

  /** The recorded reads at these index keys, and that of the index keys themselves. */
  nodesAt(keys: Iterable<string>): readonly (InputNode | undefined)[] {
    const nodes = [this.node];
    for (const key of keys) {
      const held = this.#buckets.get(key);
      if (typeof held === "object") nodes.push(held.listNode, held.keysNode);
    }
    return nodes;
  }

  /** How many reads of it somebody depends on. */
  get watched(): number {
    let count = this.node === undefined ? 0 : 1;
    for (const held of this.#buckets.values()) {
      if (typeof held === "object") count += (held.listNode === undefined ? 0 : 1) + (held.keysNode === undefined ? 0 : 1);
    }
    return count;
  }

  /** Drops a bucket that holds neither rows nor nodes. */
  tidy(at: string): void {
    const held = this.#buckets.get(at);
    if (typeof held === "object" && held.idle) this.#buckets.delete(at);
  }

  /** A row comes to an index key. */
  #add(at: string, key: string, mark: (node: InputNode | undefined) => void): void {
    const held = this.#buckets.get(at);
    if (held === undefined || (typeof held === "object" && held.size === 0)) {
      this.#nonEmpty?.add(at);
      mark(this.node);
    }
    if (held === undefined) {
      this.#buckets.set(at, key);
      return;
    }
    const bucket = this.bucket(at);
    bucket.add(key);
    mark(bucket.listNode);
    mark(bucket.keysNode);
  }

  /** The last row at an index key has gone. */
  #empty(at: string, mark: (node: InputNode | undefined) => void): void {
    this.#nonEmpty?.remove(at);
    mark(this.node);
    if (typeof this.#buckets.get(at) === "string") this.#buckets.delete(at);
    else this.tidy(at);
  }

  #place(key: string, value: V | undefined): ReadonlySet<string> {
    const keys = value === undefined ? NOTHING : this.keysOf(value, key);
    return keys.length === 0 ? NO_PLACE : new Set(keys);
  }
}
