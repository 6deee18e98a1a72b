import type { Graph } from "./graph.ts";
import { Failure, type QueryNode, RUNNING, STALE } from "./nodes.ts";
import type { Lease } from "./types.ts";

/** What was read at top level: results with what they were, and whether that was all. */
interface Reads {
  readonly results: Map<QueryNode, unknown>;
  complete: boolean;
  /** The results as a list, which is looked at at every change; made when it is first asked for. */
  listed: readonly Listed[] | undefined;
  /** The revision at which all of it was last seen to be as it was. */
  currentAt: number;
}

interface Listed {
  readonly node: QueryNode;
  readonly outcome: unknown;
}

const noReads = (complete: boolean): Reads => ({ results: new Map(), complete, listed: undefined, currentAt: -1 });

/** Makes a lease: a set of pinned nodes. A node is pinned as it is read, so a sweep meanwhile is safe. */
export function createLease(graph: Graph, label: string): Lease {
  let held = noReads(false);

  function collecting<T>(into: Reads, fn: () => T): T {
    graph.assertIdle(`lease ${label}`);
    const outer = graph.collect;
    graph.collect = {
      result(node) {
        if (!into.results.has(node)) node.pins++;
        into.results.set(node, node.outcome);
        into.listed = undefined;
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
      const now = noReads(true);
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
      held = noReads(false);
      unpin(before);
    },
    renewed() {
      const changed = held.complete ? changedLast(held.results) : undefined;
      if (changed === undefined) return undefined;
      held.results.set(changed, changed.outcome);
      held.listed = undefined;
      return changed.outcome;
    },
    *refresh() {
      for (const node of [...held.results.keys()]) {
        if ((node.flags & STALE) !== 0) yield* graph.settling(node);
      }
    },
    get current() {
      if (!held.complete) return false;
      if (held.currentAt === graph.revision) return true;
      held.listed ??= [...held.results].map(([node, outcome]) => ({ node, outcome }));
      for (const { node, outcome } of held.listed) {
        if ((node.flags & (STALE | RUNNING)) !== 0 || node.outcome !== outcome) return false;
      }
      held.currentAt = graph.revision;
      return true;
    },
  };
}

/** The last of the results, if it has changed and no other has. */
function changedLast(results: ReadonlyMap<QueryNode, unknown>): QueryNode | undefined {
  let last: QueryNode | undefined;
  for (const [node, outcome] of results) {
    if (last !== undefined || (node.flags & (STALE | RUNNING)) !== 0) return undefined;
    if (node.outcome !== outcome) last = node;
  }
  return last?.outcome instanceof Failure ? undefined : last;
}
