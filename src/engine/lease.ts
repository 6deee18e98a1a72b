import type { Graph } from "./graph.ts";
import { Failure, type QueryNode, RUNNING, STALE } from "./nodes.ts";
import { Reads, type Result, type SharedReads } from "./reads.ts";
import type { Lease } from "./types.ts";

/** A set of pinned nodes. A node is pinned as it is read, so a sweep meanwhile is safe. A class, since each proxy has several for each type. */
export class PinningLease implements Lease {
  readonly label: string;
  readonly #graph: Graph;
  readonly #shared: SharedReads;
  #held = new Reads(false);

  constructor(graph: Graph, shared: SharedReads, label: string) {
    this.#graph = graph;
    this.#shared = shared;
    this.label = label;
  }

  run<T>(fn: () => T): T {
    const now = new Reads(true);
    try {
      return this.#collecting(now, fn);
    } finally {
      const before = this.#held; // looked up only now: `fn` may have used this lease itself
      this.#held = this.#shared.take(now);
      this.#shared.leave(before);
    }
  }

  extend<T>(fn: () => T): T {
    this.#held = this.#shared.ownCopy(this.#held);
    return this.#collecting(this.#held, fn);
  }

  release(): void {
    const before = this.#held;
    this.#held = new Reads(false);
    this.#shared.leave(before);
  }

  renewed(): unknown {
    const before = this.#held;
    const last = before.complete ? changedLast(before.results) : undefined;
    if (last === undefined) return undefined;
    this.#held = this.#shared.successor(before, last.node);
    this.#shared.leave(before);
    return last.node.outcome;
  }

  *refresh(): Iterable<void> {
    for (const { node } of this.#held.results) {
      if ((node.flags & STALE) !== 0) yield* this.#graph.settling(node);
    }
  }

  get current(): boolean {
    const held = this.#held;
    if (!held.complete) return false;
    if (held.currentAt === this.#graph.revision) return true;
    const { results } = held;
    for (let at = 0; at < results.length; at++) {
      const result = results[at];
      if (result !== undefined && isOther(result)) return false;
    }
    held.currentAt = this.#graph.revision;
    return true;
  }

  #collecting<T>(into: Reads, fn: () => T): T {
    this.#graph.assertIdle("lease ", this.label);
    return collect(this.#graph, into, fn);
  }
}

/** Notes and pins what `fn` reads. What is read of inputs, or not to the end, is not noted: then it is not all. */
function collect<T>(graph: Graph, into: Reads, fn: () => T): T {
  const outer = graph.collect;
  graph.collect = {
    result: (node) => note(into, node),
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

function note(into: Reads, node: QueryNode): void {
  const known = into.find(node);
  if (known === undefined) into.add(node);
  else known.outcome = node.outcome;
}

/** Whether a result has changed, or may turn out to. */
const isOther = ({ node, outcome }: Result): boolean => (node.flags & (STALE | RUNNING)) !== 0 || node.outcome !== outcome;

/** The last of the results, if it has changed and no other has. */
function changedLast(results: readonly Result[]): Result | undefined {
  const last = results.at(-1);
  if (last === undefined || (last.node.flags & (STALE | RUNNING)) !== 0) return undefined;
  if (last.node.outcome === last.outcome || last.node.outcome instanceof Failure) return undefined;
  for (let at = results.length - 2; at >= 0; at--) {
    const result = results[at];
    if (result !== undefined && isOther(result)) return undefined;
  }
  return last;
}
