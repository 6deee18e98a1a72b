import type { Graph } from "./graph.ts";
import { Failure, type QueryNode, RUNNING, STALE } from "./nodes.ts";
import type { Lease } from "./types.ts";

/** What was read at top level: results with what they were, and whether that was all. */
interface Reads {
  /** Each result once, in the order of first reads. A list, since it is looked at at every change, and that is to leave no garbage behind. */
  readonly results: Result[];
  /** The same by node where there are many: for the few that most leases hold a look through the list is enough, and there are thousands of leases. */
  byNode: Map<QueryNode, Result> | undefined;
  complete: boolean;
  /** The revision at which all of it was last seen to be as it was. */
  currentAt: number;
}

interface Result {
  readonly node: QueryNode;
  outcome: unknown;
}

const noReads = (complete: boolean): Reads => ({ results: [], byNode: undefined, complete, currentAt: -1 });

const FEW = 16;

/** A set of pinned nodes. A node is pinned as it is read, so a sweep meanwhile is safe. A class, since each proxy has several for each type. */
export class PinningLease implements Lease {
  readonly label: string;
  readonly #graph: Graph;
  #held = noReads(false);

  constructor(graph: Graph, label: string) {
    this.#graph = graph;
    this.label = label;
  }

  run<T>(fn: () => T): T {
    const now = noReads(true);
    try {
      return this.#collecting(now, fn);
    } finally {
      const before = this.#held; // looked up only now: `fn` may have used this lease itself
      this.#held = now;
      this.#unpin(before);
    }
  }

  extend<T>(fn: () => T): T {
    return this.#collecting(this.#held, fn);
  }

  release(): void {
    const before = this.#held;
    this.#held = noReads(false);
    this.#unpin(before);
  }

  renewed(): unknown {
    const changed = this.#held.complete ? changedLast(this.#held.results) : undefined;
    if (changed === undefined) return undefined;
    changed.outcome = changed.node.outcome;
    return changed.outcome;
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

  #unpin({ results }: Reads): void {
    for (const { node } of results) if (--node.pins === 0) this.#graph.suspect(node);
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
  const known = find(into, node);
  if (known !== undefined) {
    known.outcome = node.outcome;
    return;
  }
  const result = { node, outcome: node.outcome };
  node.pins++;
  into.results.push(result);
  into.byNode?.set(node, result);
}

function find(reads: Reads, node: QueryNode): Result | undefined {
  if (reads.results.length < FEW) return reads.results.find((result) => result.node === node);
  reads.byNode ??= new Map(reads.results.map((result) => [result.node, result]));
  return reads.byNode.get(node);
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
