import { invariant } from "./errors.ts";
import { Graph } from "./graph.ts";
import { InputTable, type TableHost } from "./input-table.ts";
import { PinningLease } from "./lease.ts";
import { Failure, type Family, familyOf } from "./nodes.ts";
import { Overlay } from "./overlay.ts";
import { inputsBelow } from "./provenance.ts";
import { SharedReads } from "./reads.ts";
import { collectStats } from "./stats.ts";
import type { Engine, EngineOptions, OverlayChange, Query, QueryDef, Result, Table, TableDef } from "./types.ts";
import { WriteLog } from "./write-log.ts";

/** Makes an engine: an empty set of inputs and queries. Engines share nothing. */
export function createEngine(options: EngineOptions = {}): Engine {
  const graph = new Graph(options.recheck === true);
  const reads = new SharedReads(graph);
  const log = new WriteLog(graph);
  const tables = new Map<string, InputTable<unknown>>();
  const families = new Map<string, Family>();
  const familyByQuery = new WeakMap<object, Family>();
  let overlay: Overlay | undefined;

  const write: TableHost["write"] = (table, key, value) => log.write(table, key, value);
  const host: TableHost = { graph, write, view: (table) => overlay?.view(table) };

  function table<V>(def: TableDef<V>): Table<V> {
    invariant(!tables.has(def.name), `table ${def.name} is defined twice`);
    const made = new InputTable(host, def);
    tables.set(def.name, made as InputTable<unknown>);
    return made;
  }

  function query<K, V>(def: QueryDef<K, V>): Query<K, V> {
    invariant(!families.has(def.name), `query ${def.name} is defined twice`);
    const family = familyOf(def);
    families.set(def.name, family);
    const made = queryOf<K, V>(graph, family);
    familyByQuery.set(made, family);
    return made;
  }

  function runOverlay<T>(changes: readonly OverlayChange[], fn: (runs: () => ReadonlyMap<string, number>) => T): T {
    graph.assertIdle("overlay");
    const made = new Overlay(changes, (one) => tables.get(one.name) === one);
    overlay = made;
    graph.overlay = made;
    try {
      return fn(() => made.runs);
    } finally {
      graph.overlay = undefined;
      overlay = undefined;
    }
  }

  return {
    table,
    query,
    batch: (fn) => log.batch(fn),
    get revision() {
      return graph.revision;
    },
    lease: (label) => new PinningLease(graph, reads, label),
    sweep: (limit = Number.POSITIVE_INFINITY) => graph.sweep(limit),
    provenance(of, key) {
      graph.assertIdle("provenance");
      const family = familyByQuery.get(of);
      invariant(family !== undefined, `query ${of.queryName} is of another engine`);
      return inputsBelow(graph.node(family, key));
    },
    overlay: runOverlay,
    stats: () => collectStats(graph, families.values(), tables.values()),
  };
}

/** The callable face of a family. */
function queryOf<K, V>(graph: Graph, family: Family): Query<K, V> {
  const outcome = (key: K): unknown => (graph.overlay ?? graph).call(family, key);
  const call = (key: K): V => {
    const result = outcome(key);
    if (result instanceof Failure) throw result.error;
    return result as V;
  };
  const attempt = (key: K): Result<V> => {
    const result = outcome(key);
    if (result instanceof Failure) return { ok: false, error: result.error };
    return { ok: true, value: result as V };
  };
  return Object.assign(call, { queryName: family.name, try: attempt });
}
