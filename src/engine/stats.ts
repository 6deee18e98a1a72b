import type { Graph } from "./graph.ts";
import type { InputTable } from "./input-table.ts";
import type { Family } from "./nodes.ts";
import type { EngineStats, QueryStats } from "./types.ts";

/** Adds up the counters. Edges are counted by walking them, so that recording a read need not count. */
export function collectStats(graph: Graph, families: Iterable<Family>, tables: Iterable<InputTable<unknown>>): EngineStats {
  const queries: Record<string, QueryStats> = {};
  const sum = { nodes: 0, edges: 0, inputs: 0, watched: 0, runs: 0, hits: 0, cutoffs: 0, errors: 0 };
  for (const { name, nodes, runs, hits, cutoffs, errors } of families) {
    queries[name] = { nodes: nodes.size, runs, hits, cutoffs, errors };
    sum.nodes += nodes.size;
    sum.runs += runs;
    sum.hits += hits;
    sum.cutoffs += cutoffs;
    sum.errors += errors;
    for (const node of nodes.values()) {
      for (let link = node.deps; link !== undefined; link = link.nextDep) sum.edges++;
    }
  }
  for (const table of tables) {
    sum.inputs += table.size;
    sum.watched += table.watched;
  }
  return { ...sum, forgotten: graph.forgotten, queries };
}
