import type { Graph } from "./graph.ts";
import { type QueryNode, RUNNING, STALE } from "./nodes.ts";
import type { Lease } from "./types.ts";

/** What was read at top level: results with what they were, and whether that was all. */
interface Reads {
  readonly results: Map<QueryNode, unknown>;
  complete: boolean;
}

/** Makes a lease: a set of pinned nodes. A node is pinned as it is read, so a sweep meanwhile is safe. */
export function createLease(graph: Graph, label: string): Lease {
  let held: Reads = { results: new Map(), complete: false };

  function collecting<T>(into: Reads, fn: () => T): T {
    graph.assertIdle(`lease ${label}`);
    const outer = graph.collect;
    graph.collect = {
      result(node) {
        if (!into.results.has(node)) node.pins++;
        into.results.set(node, node.outcome);
      },
      input() {
        into.complete = false;
      },
    };
    try {
      return fn();
    } catch (error) {
      into.complete = false;
      throw error;
    } finally {
      graph.collect = outer;
    }
  }

  function unpin({ results }: Reads): void {
    for (const node of results.keys()) if (--node.pins === 0) graph.suspect(node);
  }

  return {
    label,
    run(fn) {
      const now: Reads = { results: new Map(), complete: true };
      try {
        return collecting(now, fn);
      } finally {
        const before = held; // looked up only now: `fn` may have used this lease itself
        held = now;
        unpin(before);
      }
    },
    extend: (fn) => collecting(held, fn),
    release() {
      const before = held;
      held = { results: new Map(), complete: false };
      unpin(before);
    },
    *refresh() {
      for (const node of [...held.results.keys()]) {
        if ((node.flags & STALE) !== 0) yield* graph.settling(node);
      }
    },
    get current() {
      if (!held.complete) return false;
      for (const [node, outcome] of held.results) {
        if ((node.flags & (STALE | RUNNING)) !== 0 || node.outcome !== outcome) return false;
      }
      return true;
    },
  };
}
