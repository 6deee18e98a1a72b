import { Bucket, NOTHING } from "./bucket.ts";
import { invariant } from "./errors.ts";
import type { Graph } from "./graph.ts";
import { InputNode, type InputOwner, type InputRead } from "./nodes.ts";
import { sameItems } from "./sorted-keys.ts";
import { type IndexMove, TableIndex } from "./table-index.ts";
import type { Table, TableDef } from "./types.ts";

/** Reads of one table as an overlay sees them. */
export type TableReads<V> = Pick<Table<V>, "get" | "has" | "list" | "keys" | "indexKeys" | "all">;

/** What a table needs from the engine around it. */
export interface TableHost {
  readonly graph: Graph;
  /** Applies one write, as a change of its own or as part of the batch going on. */
  write(table: InputTable<unknown>, key: string, value: unknown): void;
  /** The table as the active overlay sees it; undefined when there is none. */
  view(table: InputTable<unknown>): TableReads<unknown> | undefined;
}

/**
 * The table behind `Table`: rows, indexes, and the nodes of those reads that a query depends on. A row costs a map
 * entry until a query reads it.
 */
export class InputTable<V> implements Table<V>, InputOwner {
  readonly name: string;
  readonly #host: TableHost;
  readonly #rows = new Map<string, V>();
  readonly #same: (a: V, b: V) => boolean;
  readonly #indexes: ReadonlyMap<string, TableIndex<V>>;
  readonly #all: Bucket<V>;
  readonly #rowNodes = new Map<string, InputNode>();
  readonly #hasNodes = new Map<string, InputNode>();
  readonly #mark = (node: InputNode | undefined): void => this.#host.graph.mark(node);

  constructor(host: TableHost, def: TableDef<V>) {
    this.name = def.name;
    this.#host = host;
    this.#same = def.same ?? ((a, b) => a === b);
    this.#all = new Bucket(this.#rows);
    const indexes = Object.entries(def.indexes ?? {});
    this.#indexes = new Map(indexes.map(([name, keysOf]) => [name, new TableIndex(name, this.#rows, keysOf)]));
  }

  get size(): number {
    return this.#rows.size;
  }

  rows(): Iterable<readonly [string, V]> {
    return this.#rows;
  }

  set(key: string, value: V): void {
    invariant(value !== undefined, `table ${this.name}: undefined is no row, use delete`);
    this.#host.write(this as InputTable<unknown>, key, value);
  }

  delete(key: string): void {
    this.#host.write(this as InputTable<unknown>, key, undefined);
  }

  get(key: string): V | undefined {
    const view = this.#view();
    if (view !== undefined) return view.get(key);
    if (this.#recording()) this.#track(this.#rowNodes, "row", key);
    return this.#rows.get(key);
  }

  has(key: string): boolean {
    const view = this.#view();
    if (view !== undefined) return view.has(key);
    if (this.#recording()) this.#track(this.#hasNodes, "has", key);
    return this.#rows.has(key);
  }

  list(index: string, key: string): readonly V[] {
    const view = this.#view();
    if (view !== undefined) return view.list(index, key);
    const found = this.index(index);
    if (this.#recording()) {
      const bucket = found.bucket(key);
      bucket.listNode ??= new InputNode(this, "list", { index, key });
      this.#host.graph.track(bucket.listNode);
    }
    return found.values(key);
  }

  keys(index: string, key: string): readonly string[] {
    const view = this.#view();
    if (view !== undefined) return view.keys(index, key);
    const found = this.index(index);
    if (this.#recording()) {
      const bucket = found.bucket(key);
      bucket.keysNode ??= new InputNode(this, "keys", { index, key });
      this.#host.graph.track(bucket.keysNode);
    }
    return found.keys(key);
  }

  indexKeys(index: string): readonly string[] {
    const view = this.#view();
    if (view !== undefined) return view.indexKeys(index);
    const found = this.index(index);
    if (this.#recording()) {
      found.node ??= new InputNode(this, "indexKeys", { index, key: "*" });
      this.#host.graph.track(found.node);
    }
    return found.indexKeys();
  }

  all(): readonly V[] {
    const view = this.#view();
    if (view !== undefined) return view.all();
    if (this.#recording()) {
      this.#all.listNode ??= new InputNode(this, "all", { index: "*", key: "*" });
      this.#host.graph.track(this.#all.listNode);
    }
    return this.#all.values();
  }

  /** Writes a row (`undefined` deletes), marks its readers and says whether it was a change. For the host only. */
  apply(key: string, value: V | undefined): boolean {
    const before = this.#rows.get(key);
    if (this.sameRow(before, value)) return false;
    if (before === undefined && value !== undefined) this.#insert(key, value);
    else this.#change(key, before, value);
    return true;
  }

  /** A row that was not there before, as all are at a start. */
  #insert(key: string, value: V): void {
    // Index functions may throw: all are asked before anything is written.
    const places: (readonly string[])[] = [];
    for (const index of this.#indexes.values()) places.push(index.keysOf(value, key));
    const mark = this.#mark;
    this.#rows.set(key, value);
    mark(this.#rowNodes.get(key));
    mark(this.#hasNodes.get(key));
    this.#all.add(key);
    mark(this.#all.listNode);
    let at = 0;
    for (const index of this.#indexes.values()) index.insert(key, places[at++] ?? NOTHING, mark);
  }

  #change(key: string, before: V | undefined, value: V | undefined): void {
    const moves: [TableIndex<V>, IndexMove][] = [];
    for (const index of this.#indexes.values()) {
      const move = index.move(key, before, value);
      if (move.before.size + move.after.size > 0) moves.push([index, move]);
    }
    const mark = this.#mark;
    if (value === undefined) this.#rows.delete(key);
    else this.#rows.set(key, value);
    mark(this.#rowNodes.get(key));
    if (value === undefined) {
      mark(this.#hasNodes.get(key));
      this.#all.remove(key);
    } else this.#all.touch(key);
    mark(this.#all.listNode);
    for (const [index, move] of moves) index.apply(key, move, mark);
  }

  /** The row, whatever an overlay says, without recording. */
  row(key: string): V | undefined {
    return this.#rows.get(key);
  }

  /** Keys of all rows, sorted, without recording. */
  allKeys(): readonly string[] {
    return this.#all.keys();
  }

  /** All rows in key order, whatever an overlay says, without recording. */
  allRows(): readonly V[] {
    return this.#all.values();
  }

  /** An index by name, or a complaint. */
  index(name: string): TableIndex<V> {
    const index = this.#indexes.get(name);
    invariant(index !== undefined, `table ${this.name} has no index ${name}`);
    return index;
  }

  /** All indexes. */
  indexes(): Iterable<TableIndex<V>> {
    return this.#indexes.values();
  }

  /** Whether replacing one row by the other is no change. */
  sameRow(a: V | undefined, b: V | undefined): boolean {
    if (a === undefined || b === undefined) return a === b;
    return this.#same(a, b);
  }

  /** The recorded reads that a change of these rows, standing at these places of the indexes, may concern. */
  nodesAt(keys: Iterable<string>, places: ReadonlyMap<string, ReadonlyMap<string, unknown>>): readonly InputNode[] {
    const nodes: (InputNode | undefined)[] = [this.#all.listNode];
    for (const key of keys) nodes.push(this.#rowNodes.get(key), this.#hasNodes.get(key));
    for (const [name, at] of places) nodes.push(...this.index(name).nodesAt(at.keys()));
    return nodes.filter((node) => node !== undefined);
  }

  current(node: InputNode): unknown {
    switch (node.read) {
      case "row":
        return this.#rows.get(node.key);
      case "has":
        return this.#rows.has(node.key);
      case "list":
        return this.index(node.index).values(node.key);
      case "keys":
        return this.index(node.index).keys(node.key);
      case "indexKeys":
        return this.index(node.index).indexKeys();
      case "all":
        return this.#all.values();
    }
  }

  sameInput(node: InputNode, a: unknown, b: unknown): boolean {
    if (node.read === "row") return this.sameRow(a as V | undefined, b as V | undefined);
    if (!Array.isArray(a) || !Array.isArray(b)) return false;
    if (node.read === "keys" || node.read === "indexKeys") return sameItems(a, b);
    return a.length === b.length && a.every((row: V, i) => row === b[i] || this.#same(row, b[i]));
  }

  drop(node: InputNode): void {
    switch (node.read) {
      case "row":
        this.#rowNodes.delete(node.key);
        return;
      case "has":
        this.#hasNodes.delete(node.key);
        return;
      case "indexKeys":
        this.index(node.index).node = undefined;
        return;
      case "all":
        this.#all.listNode = undefined;
        this.#all.forgetValues();
        return;
      case "list":
      case "keys":
        this.#dropFromBucket(node);
    }
  }

  /** How many of its reads somebody depends on. */
  get watched(): number {
    let count = this.#rowNodes.size + this.#hasNodes.size + (this.#all.listNode === undefined ? 0 : 1);
    for (const index of this.#indexes.values()) count += index.watched;
    return count;
  }

  #dropFromBucket(node: InputNode): void {
    const index = this.index(node.index);
    const bucket = index.bucket(node.key);
    if (node.read === "keys") {
      bucket.keysNode = undefined;
    } else {
      bucket.listNode = undefined;
      bucket.forgetValues();
    }
    index.tidy(node.key);
  }

  #view(): TableReads<V> | undefined {
    if (this.#host.graph.overlay === undefined) return undefined;
    return this.#host.view(this as InputTable<unknown>) as TableReads<V> | undefined;
  }

  /** Whether a query reads. If none does, a lease may have to know. */
  #recording(): boolean {
    const { graph } = this.#host;
    if (!graph.recording) graph.collect?.input();
    return graph.recording;
  }

  #track(nodes: Map<string, InputNode>, read: InputRead, key: string): void {
    let node = nodes.get(key);
    if (node === undefined) {
      node = new InputNode(this, read, { index: "", key });
      nodes.set(key, node);
    }
    this.#host.graph.track(node);
  }
}
