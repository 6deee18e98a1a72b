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

/** One named index of a table: index key → bucket, and the sorted set of index keys that have rows. */
export class TableIndex<V> {
  readonly name: string;
  readonly #rows: ReadonlyMap<string, V>;
  readonly #keysOf: (value: V, key: string) => readonly string[];
  readonly #buckets = new Map<string, Bucket<V>>();
  readonly #nonEmpty = new SortedKeys();
  node: InputNode | undefined;

  constructor(name: string, rows: ReadonlyMap<string, V>, keysOf: (value: V, key: string) => readonly string[]) {
    this.name = name;
    this.#rows = rows;
    this.#keysOf = keysOf;
  }

  /** Where a row stands before and after a write. Calls the index function, so it may throw: do it before writing. */
  move(key: string, before: V | undefined, after: V | undefined): IndexMove {
    return { before: this.#place(key, before), after: this.#place(key, after) };
  }

  /** Follows a write; tells which nodes to mark. */
  apply(key: string, { before, after }: IndexMove, mark: (node: InputNode | undefined) => void): void {
    for (const at of before) {
      const bucket = this.bucket(at);
      if (after.has(at)) bucket.touch(key);
      else {
        bucket.remove(key);
        mark(bucket.keysNode);
        if (bucket.size === 0) this.#empty(at, mark);
      }
      mark(bucket.listNode);
    }
    for (const at of after) {
      if (before.has(at)) continue;
      const bucket = this.bucket(at);
      if (bucket.size === 0) {
        this.#nonEmpty.add(at);
        mark(this.node);
      }
      bucket.add(key);
      mark(bucket.listNode);
      mark(bucket.keysNode);
    }
  }

  /** The bucket of an index key, made if there is none: for those who will leave a row or a node in it. */
  bucket(at: string): Bucket<V> {
    let bucket = this.#buckets.get(at);
    if (bucket === undefined) {
      bucket = new Bucket(this.#rows);
      this.#buckets.set(at, bucket);
    }
    return bucket;
  }

  values(at: string): readonly V[] {
    return this.#buckets.get(at)?.values() ?? NOTHING;
  }

  keys(at: string): readonly string[] {
    return this.#buckets.get(at)?.keys() ?? NOTHING;
  }

  indexKeys(): readonly string[] {
    return this.#nonEmpty.toArray();
  }

  /** The recorded reads at these index keys, and that of the index keys themselves. */
  nodesAt(keys: Iterable<string>): readonly (InputNode | undefined)[] {
    const nodes = [this.node];
    for (const key of keys) {
      const bucket = this.#buckets.get(key);
      nodes.push(bucket?.listNode, bucket?.keysNode);
    }
    return nodes;
  }

  /** How many reads of it somebody depends on. */
  get watched(): number {
    let count = this.node === undefined ? 0 : 1;
    for (const { listNode, keysNode } of this.#buckets.values()) {
      count += (listNode === undefined ? 0 : 1) + (keysNode === undefined ? 0 : 1);
    }
    return count;
  }

  /** Drops a bucket that holds neither rows nor nodes. */
  tidy(at: string): void {
    if (this.#buckets.get(at)?.idle === true) this.#buckets.delete(at);
  }

  /** The last row at an index key has gone. */
  #empty(at: string, mark: (node: InputNode | undefined) => void): void {
    this.#nonEmpty.remove(at);
    mark(this.node);
    this.tidy(at);
  }

  #place(key: string, value: V | undefined): ReadonlySet<string> {
    const keys = value === undefined ? NOTHING : this.#keysOf(value, key);
    return keys.length === 0 ? NO_PLACE : new Set(keys);
  }
}
