import type { Graph } from "./graph.ts";
import type { QueryNode } from "./nodes.ts";

/** A result that was read, with what it was. */
export interface Result {
  readonly node: QueryNode;
  outcome: unknown;
}

const FEW = 16;

/** What was read at top level: results with what they were, and whether that was all. While it is collected it is one lease's; what leases share stays as it is. */
export class Reads {
  /** Each result once, in the order of first reads. A list, since it is looked at at every change, and that is to leave no garbage behind. */
  readonly results: Result[] = [];
  complete: boolean;
  /** The revision at which all of it was last seen to be as it was. */
  currentAt = -1;
  /** Leases that share it; none while it is one lease's own. */
  holders = 0;
  /** What it gave way to when its last result alone changed. */
  successor: Reads | undefined;
  /** The same by node where there are many: for the few that most leases hold a look through the list is enough, and there are thousands of leases. */
  #byNode: Map<QueryNode, Result> | undefined;

  constructor(complete: boolean) {
    this.complete = complete;
  }

  find(node: QueryNode): Result | undefined {
    if (this.results.length < FEW) return this.results.find((result) => result.node === node);
    this.#byNode ??= new Map(this.results.map((result) => [result.node, result]));
    return this.#byNode.get(node);
  }

  /** Adds a result as it is now, and pins it. */
  add(node: QueryNode, outcome: unknown = node.outcome): void {
    const result = { node, outcome };
    node.pins++;
    this.results.push(result);
    this.#byNode?.set(node, result);
  }
}

/**
 * One list for all leases that read the same and found the same: proxies of a class have one for each type, so that whether it is as it was is found out once for all
 * of them, and not in thousands of places in memory at each change.
 */
export class SharedReads {
  readonly #graph: Pick<Graph, "suspect">;
  readonly #byDigest = new Map<number, Reads[]>();

  constructor(graph: Pick<Graph, "suspect">) {
    this.#graph = graph;
  }

  /** What a lease is to hold for what it has just read. Who did not read to the end holds that alone. */
  take(reads: Reads): Reads {
    if (!reads.complete) return reads;
    const digest = digestOf(reads.results);
    const alike = this.#byDigest.get(digest);
    const known = alike?.find((one) => isSame(one.results, reads.results));
    if (known !== undefined) this.#unpin(reads);
    else if (alike === undefined) this.#byDigest.set(digest, [reads]);
    else alike.push(reads);
    const held = known ?? reads;
    held.holders += 1;
    return held;
  }

  /** A lease does not hold it any more. */
  leave(reads: Reads): void {
    if (reads.holders > 1) {
      reads.holders -= 1;
      return;
    }
    if (reads.holders === 1) this.#forget(reads);
    this.#unpin(reads);
  }

  /** The same as one lease's own, to which more may be added. */
  ownCopy(reads: Reads): Reads {
    if (reads.holders === 0) return reads;
    const copy = new Reads(reads.complete);
    for (const { node, outcome } of reads.results) copy.add(node, outcome);
    this.leave(reads);
    return copy;
  }

  /** The same with the last result, `last`, as it is now. */
  successor(reads: Reads, last: QueryNode): Reads {
    const known = reads.successor;
    if (known !== undefined && known.holders > 0 && known.results.at(-1)?.outcome === last.outcome) {
      known.holders += 1;
      return known;
    }
    const next = new Reads(true);
    for (const { node, outcome } of reads.results) next.add(node, node === last ? last.outcome : outcome);
    reads.successor = this.take(next);
    return reads.successor;
  }

  #forget(reads: Reads): void {
    reads.holders = 0;
    reads.successor = undefined;
    const digest = digestOf(reads.results);
    const left = this.#byDigest.get(digest)?.filter((one) => one !== reads) ?? [];
    if (left.length === 0) this.#byDigest.delete(digest);
    else this.#byDigest.set(digest, left);
  }

  #unpin({ results }: Reads): void {
    for (const { node } of results) if (--node.pins === 0) this.#graph.suspect(node);
  }
}

/** By which results it is, whatever they were: one number, as there are many lists and most are told apart by it. */
function digestOf(results: readonly Result[]): number {
  let digest = results.length;
  for (const { node } of results) digest = (Math.imul(digest, 31) + node.serial) | 0;
  return digest;
}

const isSame = (a: readonly Result[], b: readonly Result[]): boolean =>
  a.length === b.length && a.every(({ node, outcome }, at) => node === b[at]?.node && outcome === b[at]?.outcome);
