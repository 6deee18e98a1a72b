import { QueryCycleError } from "./errors.ts";

/** What can be on a call stack. */
export interface Callee {
  readonly family: { readonly name: string };
  readonly id: unknown;
  readonly label: string;
}

interface Frame<N> {
  readonly node: N;
  /** Number of the run. */
  readonly index: number;
  /** Lowest number of a running or open query its reads lead back to; Infinity while it is on no cycle. */
  low: number;
  /** Length of `open` when it started. */
  readonly mark: number;
  /** The first read that was on a cycle. */
  next: N | undefined;
}

type Open<N> = Pick<Frame<N>, "node" | "index" | "next">;

/** How a run ended: on no cycle; on a cycle whose head still runs; as the head of a cycle with these members. */
export type Verdict<N> =
  | { readonly kind: "free" }
  | { readonly kind: "open" }
  | { readonly kind: "cycle"; readonly members: readonly N[]; readonly error: QueryCycleError };

const FREE = { kind: "free" } as const;
const OPEN = { kind: "open" } as const;

/**
 * The queries being computed, and which of them ask for each other: Tarjan's strongly connected components, found
 * while running. A query that closes a cycle stays *open* until the lowest query of the cycle has ended; only then
 * are the members known, and all get the same error. That makes the outcome independent of who was asked first.
 */
export class CallStack<N extends Callee> {
  readonly #frames: Frame<N>[] = [];
  readonly #open: Open<N>[] = [];
  #started = 0;

  get depth(): number {
    return this.#frames.length;
  }

  enter(node: N): void {
    this.#frames.push({ node, index: ++this.#started, low: Number.POSITIVE_INFINITY, mark: this.#open.length, next: undefined });
  }

  /** Notes that the running query read `node`, which runs or is open, and gives the error to throw into it. */
  cycle(node: N): QueryCycleError {
    const top = this.#frames.at(-1);
    if (top !== undefined) {
      top.low = Math.min(top.low, this.#indexOf(node));
      top.next ??= node;
    }
    return errorOf([node]);
  }

  /** Ends the running query. */
  leave(): Verdict<N> {
    const frame = this.#frames.pop();
    if (frame === undefined || frame.low === Number.POSITIVE_INFINITY) return FREE;
    this.#open.push(frame);
    if (frame.low < frame.index) {
      const parent = this.#frames.at(-1);
      if (parent !== undefined) parent.low = Math.min(parent.low, frame.low);
      return OPEN;
    }
    const members = this.#open.splice(frame.mark);
    return { kind: "cycle", members: members.map((one) => one.node), error: errorOf(ringOf(members)) };
  }

  /**
   * Cuts the stack back to `depth` without results, giving `reset` each query that ran or was open above it. By depth
   * and not by one, and forgetting them only at the end, because a level that has just overflowed the machine's stack
   * may have no room left for this: then the one below does it all.
   */
  abandon(depth: number, reset: (node: N) => void): void {
    const mark = this.#frames[depth]?.mark ?? this.#open.length;
    for (let i = depth; i < this.#frames.length; i++) resetAt(this.#frames, i, reset);
    for (let i = mark; i < this.#open.length; i++) resetAt(this.#open, i, reset);
    this.#frames.length = depth;
    this.#open.length = mark;
  }

  #indexOf(node: N): number {
    const known = this.#open.find((one) => one.node === node) ?? this.#frames.find((one) => one.node === node);
    return known?.index ?? Number.POSITIVE_INFINITY;
  }
}

function resetAt<N>(items: readonly Open<N>[], i: number, reset: (node: N) => void): void {
  const item = items[i];
  if (item !== undefined) reset(item.node);
}

/** Follows each member's first read on the cycle from the smallest label until it repeats: the same for every entry. */
function ringOf<N extends Callee>(members: readonly Open<N>[]): readonly N[] {
  const next = new Map(members.map((one) => [one.node, one.next]));
  const path: N[] = [];
  let node: N | undefined = members.map((one) => one.node).reduce(smaller);
  while (node !== undefined && !path.includes(node)) {
    path.push(node);
    node = next.get(node);
  }
  const ring = node === undefined ? path : path.slice(path.indexOf(node));
  const start = ring.indexOf(ring.reduce(smaller));
  return [...ring.slice(start), ...ring.slice(0, start)];
}

function smaller<N extends Callee>(a: N, b: N): N {
  return b.label < a.label ? b : a;
}

function errorOf(ring: readonly Callee[]): QueryCycleError {
  const [first] = ring;
  return new QueryCycleError(
    first?.family.name ?? "",
    String(first?.id),
    ring.map((one) => one.label),
  );
}
