import type { QueryError } from "./errors.ts";

/** Options of an engine. */
export interface EngineOptions {
  /**
   * Test mode: every cache hit computes the query again and throws `EngineRecheckError` unless the result is `same`.
   * Finds queries that read something the engine cannot see (a clock, a global, a mutated input).
   */
  readonly recheck?: boolean;
}

/** Keys that intern themselves. Two keys of different type (`1` and `"1"`) are different keys. */
export type PrimitiveKey = string | number | boolean | bigint | null | undefined;

/** Inputs and the pure queries over them. Nothing is ever computed until it is asked for. */
export interface Engine {
  /** Defines a table of inputs: immutable rows keyed by string. Names are unique per engine. */
  table<V>(def: TableDef<V>): Table<V>;
  /** Defines a named pure keyed query. Names are unique per engine. Keys that are not primitive need `id`. */
  query<K extends PrimitiveKey, V>(def: QueryDef<K, V>): Query<K, V>;
  query<K, V>(def: QueryDef<K, V> & { readonly id: (key: K) => string }): Query<K, V>;
  /**
   * Applies several writes as one change and says whether anything really changed. When `fn` throws, its writes are
   * undone. Reads inside see the writes made so far.
   */
  batch(fn: () => void): boolean;
  /** Grows by one with each write or batch that really changed something. */
  readonly revision: number;
  /** A holder of query results: what no lease reaches is forgotten by `sweep`. */
  lease(label: string): Lease;
  /**
   * Forgets what no lease reaches; returns how many query nodes went. Costs in proportion to the garbage (some 3 µs a
   * node); with a `limit` it stops there and the next call goes on, so that no slice of work gets long.
   */
  sweep(limit?: number): number;
  /** The inputs below a query result, transitively, sorted, each once. Computes the query if need be. */
  provenance<K, V>(query: Query<K, V>, key: K): readonly InputRef[];
  /**
   * Evaluates `fn` against the inputs with `changes` on top. Inputs, caches and counters are untouched; a result that
   * no change reaches is the very instance the cache holds, and so is one that came out `same`. `runs` says how often
   * each query was computed for it so far, by name.
   */
  overlay<T>(changes: readonly OverlayChange[], fn: (runs: () => ReadonlyMap<string, number>) => T): T;
  /** Counters for `/debug`. Walks the graph: not for hot paths. */
  stats(): EngineStats;
}

/** What a table is. */
export interface TableDef<V> {
  readonly name: string;
  /** Named indexes: each maps a row to zero or more index keys. Pure. */
  readonly indexes?: Readonly<Record<string, (value: V, key: string) => readonly string[]>>;
  /** Writing a row `same` as the present one is no change. Default: identity. */
  readonly same?: (a: V, b: V) => boolean;
}

/** A table of inputs. Reads inside a query are recorded; elsewhere they are plain look-ups. */
export interface Table<V> {
  readonly name: string;
  /** Puts a row; outside queries and overlays only. `undefined` is no value: use `delete`. */
  set(key: string, value: V): void;
  delete(key: string): void;
  /** The row. Absence is recorded too: creating the row later re-runs the reader. */
  get(key: string): V | undefined;
  /** Whether the row exists. Readers re-run only when that changes. */
  has(key: string): boolean;
  /** Rows under an index key, in key order; the same array while no member changed. One read, also when empty. */
  list(index: string, key: string): readonly V[];
  /** Keys of the rows under an index key, sorted. Does not change with the content of a row, only with membership. */
  keys(index: string, key: string): readonly string[];
  /** The index keys that have rows, sorted; the same array while unchanged. */
  indexKeys(index: string): readonly string[];
  /** All rows in key order; one read; the same array while unchanged. */
  all(): readonly V[];
  /** All rows with their keys, in no order and whatever an overlay says. Never recorded: not for queries. */
  rows(): Iterable<readonly [string, V]>;
  /** Number of rows. Never recorded. */
  readonly size: number;
}

/** What a query is. */
export interface QueryDef<K, V> {
  readonly name: string;
  /** Interns the key. Needed unless keys are primitive; equal ids mean one shared node. */
  readonly id?: (key: K) => string;
  /** Pure: may read tables, other queries and its key, nothing else. Synchronous. */
  readonly compute: (key: K) => V;
  /**
   * Run as soon as something it read has changed, if anybody holds it: where it comes out the same nobody above ever hears of the change, and need not look. For small
   * queries that many depend on and that read nothing but inputs and other such queries.
   */
  readonly eager?: true;
  /** Early cut-off: where it holds, the OLD value is kept and readers do not re-run. Default: structural `same`. */
  readonly same?: (a: V, b: V) => boolean;
}

/** A query. Calling it inside another query records the read. Throws `QueryError` if it failed. */
export interface Query<K, V> {
  (key: K): V;
  readonly queryName: string;
  /** Like calling it, with failure as a value; the read is recorded all the same. */
  try(key: K): Result<V>;
}

/** Outcome of a query as a value. */
export type Result<V> = { readonly ok: true; readonly value: V } | { readonly ok: false; readonly error: QueryError };

/** Keeps query results and all below them alive. */
export interface Lease {
  readonly label: string;
  /** Runs `fn`; the results it asks for at top level replace those held before, also when it throws. */
  run<T>(fn: () => T): T;
  /** Like `run`, but adds to what is held. */
  extend<T>(fn: () => T): T;
  /** Lets go of everything. The lease may be used again. */
  release(): void;
  /**
   * Whether `fn` of the last `run` would surely read the same again, as far as is known without computing anything: all results it asked for are
   * up to date and what they were, and it read no table itself.
   */
  readonly current: boolean;
  /**
   * What became of the last result that `fn` of the last `run` asked for, where it alone has changed: it is held from now on. Undefined where
   * something else changed too, or nothing did, or it is not up to date or failed.
   */
  renewed(): unknown;
  /** Brings the results that are held up to date in small steps; the caller may pause, and write, between them. */
  refresh(): Iterable<void>;
}

/**
 * One recorded read of inputs. `row` and `absent`: one row (through `get` or `has`). `list`: the rows under an index
 * key; `keys`: only their names. `all()` is index `*`, key `*`; `indexKeys(i)` is `keys` of index i, key `*`.
 */
export type InputRef =
  | { readonly table: string; readonly key: string; readonly read: "row" | "absent" }
  | { readonly table: string; readonly index: string; readonly key: string; readonly read: "list" | "keys" };

/** One change of an overlay; `undefined` deletes. Later changes of a row win over earlier ones. */
export interface OverlayChange {
  readonly table: Table<unknown>;
  readonly key: string;
  readonly value: unknown;
}

/** Counters of one query. All but `nodes` only ever grow. */
export interface QueryStats {
  /** Results held now. */
  readonly nodes: number;
  /** Times it was computed. */
  readonly runs: number;
  /** Reads answered from the cache. */
  readonly hits: number;
  /** Runs whose result was `same` as before. */
  readonly cutoffs: number;
  /** Runs that ended in an error. */
  readonly errors: number;
}

/** Counters of the whole engine; the sums of those per query, and the graph itself. */
export interface EngineStats extends QueryStats {
  /** Recorded reads held now. */
  readonly edges: number;
  /** Rows in all tables. */
  readonly inputs: number;
  /** Input reads somebody depends on: rows, absences, lists. */
  readonly watched: number;
  /** Query nodes swept so far. */
  readonly forgotten: number;
  readonly queries: Readonly<Record<string, QueryStats>>;
}
