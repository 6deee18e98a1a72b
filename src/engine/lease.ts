import type { Graph } from "./graph.ts";
import type { QueryNode } from "./nodes.ts";
import type { Lease } from "./types.ts";

/** Makes a lease: a set of pinned nodes. A node is pinned as it is read, so a sweep meanwhile is safe. */
export function createLease(graph: Graph, label: string): Lease {
  let held = new Set<QueryNode>();

  function collecting<T>(into: Set<QueryNode>, fn: () => T): T {
    graph.assertIdle(`lease ${label}`);
    const outer = graph.collect;
    graph.collect = (node) => {
      if (into.has(node)) return;
      into.add(node);
      node.pins++;
    };
    try {
      return fn();
    } finally {
      graph.collect = outer;
    }
  }

  function unpin(nodes: ReadonlySet<QueryNode>): void {
    for (const node of nodes) if (--node.pins === 0) graph.suspect(node);
  }

  return {
    label,
    run(fn) {
      const now = new Set<QueryNode>();
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
      held = new Set();
      unpin(before);
    },
  };
}
