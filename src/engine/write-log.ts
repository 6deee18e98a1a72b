import type { Graph } from "./graph.ts";
import type { InputTable } from "./input-table.ts";

type AnyTable = InputTable<unknown>;

/**
 * Writes and the batches around them. While a batch runs, the rows it found are remembered: to undo it when it throws,
 * and to know at its end whether anything really changed (a row written there and back did not).
 */
export class WriteLog {
  readonly #graph: Graph;
  #originals: Map<AnyTable, Map<string, unknown>> | undefined;

  constructor(graph: Graph) {
    this.#graph = graph;
  }

  /** Writes one row. */
  write(table: AnyTable, key: string, value: unknown): void {
    this.#graph.assertIdle("write to table ", table.name);
    const before = table.row(key);
    if (!table.apply(key, value)) return;
    if (this.#originals !== undefined) {
      remember(rowsOf(this.#originals, table), key, before);
      return;
    }
    this.#graph.revision++;
    this.#graph.settleEager();
  }

  /** Runs `fn` as one change. A batch inside a batch is a part of it that can fail on its own. */
  batch(fn: () => void): boolean {
    this.#graph.assertIdle("batch");
    const outer = this.#originals;
    const mine = new Map<AnyTable, Map<string, unknown>>();
    this.#originals = mine;
    try {
      fn();
    } catch (error) {
      for (const [table, key, before] of entries(mine)) table.apply(key, before);
      throw error;
    } finally {
      this.#originals = outer;
      if (outer === undefined) this.#graph.settleEager();
    }
    const changed = entries(mine).some(([table, key, before]) => !table.sameRow(before, table.row(key)));
    if (outer !== undefined) for (const [table, key, before] of entries(mine)) remember(rowsOf(outer, table), key, before);
    else if (changed) this.#graph.revision++;
    return changed;
  }
}

function rowsOf(log: Map<AnyTable, Map<string, unknown>>, table: AnyTable): Map<string, unknown> {
  let rows = log.get(table);
  if (rows === undefined) {
    rows = new Map();
    log.set(table, rows);
  }
  return rows;
}

function remember(rows: Map<string, unknown>, key: string, before: unknown): void {
  if (!rows.has(key)) rows.set(key, before);
}

function entries(log: ReadonlyMap<AnyTable, ReadonlyMap<string, unknown>>): [AnyTable, string, unknown][] {
  return [...log].flatMap(([table, rows]) => [...rows].map(([key, before]): [AnyTable, string, unknown] => [table, key, before]));
}
