import { createReactiveSystem, type Link, type ReactiveNode } from "alien-signals/system";
import { CallStack } from "./call-stack.ts";
import { EngineRecheckError, invariant, isFault } from "./errors.ts";
import { asNode, CLEAN, DIRTY, Failure, type Family, InputNode, PENDING, QueryNode, RUNNING, STALE } from "./nodes.ts";
import type { Result } from "./reads.ts";

/** Eager results that are settled at once; where a change marks more of them, it is for those who ask to find out. */
const MOST_EAGER = 32;
/** Results that are looked at in one step of bringing others up to date, where none of them has to be run. */
const LOOKS_PER_STEP = 64;

/** What an overlay answers in place of the graph while it is active. */
export interface OverlayCalls {
  call(family: Family, key: unknown): unknown;
}

/** What a lease is told while it collects. */
export interface Collector {
  /** A result was asked for. */
  result(node: QueryNode): void;
  /** A table was read past any query. */
  input(): void;
}

/**
 * The reactive graph: who read what, what is stale, what nobody holds. Edges and marking are alien-signals'; looking
 * whether a marked node is really stale is ours, because its `checkDirty` takes a node that is being computed for
 * valid, and so would miss a cycle, or an edge that turned round, among marked nodes.
 *
 * Invariants: a node that is not stale has no stale node below it; the edges have no cycle (queries on a cycle have no
 * edges to each other: each gets an edge to all that the cycle read outside, so any of it wakes them all).
 */
export class Graph {
  /** The query that reads are recorded for. */
  #active: QueryNode | undefined;
  /** Distinguishes the reads of one run from another's. */
  #activeRun = 0;
  #runs = 0;
  /** Nodes made so far. */
  #made = 0;
  #rechecking = 0;
  #garbage: (QueryNode | InputNode)[] = [];
  /** Eager results that were marked and are not settled yet, with what they were. */
  #watched: Result[] = [];
  readonly #stack = new CallStack<QueryNode>();
  readonly #checked: WeakMap<QueryNode, number> | undefined;
  readonly #system = createReactiveSystem({
    update: () => false, // only called by `checkDirty`, which is not used
    notify: (node: ReactiveNode) => this.#noteWatched(asNode(node)),
    unwatched: (node: ReactiveNode) => this.suspect(asNode(node)),
  });

  /** Set while an overlay is evaluated. */
  overlay: OverlayCalls | undefined;
  /** Set while a lease collects what is asked for at top level. */
  collect: Collector | undefined;
  /** Grows with each real change of the inputs. */
  revision = 0;
  forgotten = 0;

  constructor(recheck: boolean) {
    this.#checked = recheck ? new WeakMap() : undefined;
  }

  /** Throws unless no query is being computed and no overlay is active: `what` would change the base under it. */
  assertIdle(what: string, name = ""): void {
    if (this.#stack.depth === 0 && this.#rechecking === 0 && this.overlay === undefined) return; // asked at every step: nothing is to be made for it
    invariant(this.#stack.depth === 0 && this.#rechecking === 0, `${what}${name} inside a query`);
    invariant(this.overlay === undefined, `${what}${name} inside an overlay`);
  }

  /** Whether reads of inputs are recorded now. */
  get recording(): boolean {
    return this.#active !== undefined;
  }

  /** The outcome of a query; the read is recorded. A read that closes a cycle is answered with a failure. */
  call(family: Family, key: unknown): unknown {
    if (this.#watched.length > 0 && this.#active === undefined) this.settleEager();
    const node = this.#expected(family, key) ?? this.#lookup(family, key);
    if ((node.flags & (STALE | RUNNING)) === 0) {
      this.#hit(node);
    } else {
      if ((node.flags & RUNNING) === 0) this.#freshen(node);
      if ((node.flags & RUNNING) !== 0) return new Failure(this.#stack.cycle(node));
    }
    if (this.#active !== undefined) this.#system.link(node, this.#active, this.#activeRun);
    else this.collect?.result(node);
    return node.outcome;
  }

  /** The up-to-date node of a query, for looking at its edges. */
  node(family: Family, key: unknown): QueryNode {
    this.call(family, key);
    return this.#lookup(family, key);
  }

  /**
   * Brings a node up to date in steps, from below: what it read last is settled first, one result a step, so that what remains of the node itself is
   * its own run. A result that turns out not to be read any more has been computed in vain, no more. Most of what is marked turns out to be as it was, and
   * there is much of it: so it is one loop, and a step ends where a query was run or many were looked at.
   */
  *settling(node: QueryNode): Iterable<void> {
    const path = [node];
    let looks = 0;
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      if (isWanting(top) && pushStaleReads(path, top)) continue;
      path.pop();
      if (!isWanting(top)) continue;
      const { runs } = top.family;
      this.#freshen(top);
      looks += 1;
      if (top.family.runs !== runs || looks % LOOKS_PER_STEP === 0) yield;
    }
  }

  /** Records the read of an input for the active query. */
  track(node: InputNode): void {
    if ((node.flags & DIRTY) !== 0) this.#refresh(node);
    if (this.#active !== undefined) this.#system.link(node, this.#active, this.#activeRun);
  }

  /** Marks all that is above a written input. Nothing is computed. */
  mark(node: InputNode | undefined): void {
    if (node === undefined || (node.flags & DIRTY) !== 0) return;
    node.flags |= DIRTY;
    if (node.subs !== undefined) this.#system.propagate(node.subs, false);
  }

  /** An eager result was marked: for the first time, not while it is being looked at. */
  #noteWatched(node: QueryNode | InputNode): void {
    if (node instanceof QueryNode && (node.flags & DIRTY) === 0) this.#watched.push({ node, outcome: node.outcome });
  }

  /**
   * Settles what is eager of all that was marked, which marks what is above those that changed. To be called when a change is complete, and before anything is asked
   * for meanwhile: until then nothing above an eager result knows of the change.
   */
  settleEager(): void {
    const watched = this.#watched;
    for (let at = 0; at < watched.length; at++) {
      const one = watched[at];
      if (one === undefined) continue;
      const { node, outcome } = one;
      if (at < MOST_EAGER && isWanting(node)) this.#freshen(node);
      const isOpen = (node.flags & STALE) !== 0;
      if (node.subs === undefined || (!isOpen && node.outcome === outcome)) continue;
      this.#system.propagate(node.subs, false);
      if (!isOpen) this.#changed(node);
    }
    this.#watched = [];
  }

  /** Puts a node up for the next sweep to look at. */
  suspect(node: QueryNode | InputNode): void {
    if (node.queued) return;
    node.queued = true;
    this.#garbage.push(node);
  }

  /** Forgets all that no lease reaches. Edges have no cycles, so "no reader and no lease" finds all of it. */
  sweep(limit: number): number {
    this.assertIdle("sweep");
    const queue = this.#garbage;
    const before = this.forgotten;
    while (this.forgotten - before < limit) {
      const node = queue.pop();
      if (node === undefined) {
        this.#garbage = []; // the old array's capacity would stay as large as the largest garbage ever
        break;
      }
      node.queued = false;
      if (node instanceof InputNode) {
        if (node.subs === undefined) node.owner.drop(node);
        continue;
      }
      // a cycle goes as a whole: a part of it asked anew would find another cycle than the whole did
      const together = node.cycle?.filter((one) => one.cycle === node.cycle) ?? [node];
      if (together.every((one) => one.subs === undefined && one.pins === 0)) for (const one of together) this.#forget(one);
    }
    return this.forgotten - before;
  }

  /** The node callers will most likely ask for, since a query mostly reads the same things in the same order. */
  #expected(family: Family, key: unknown): QueryNode | undefined {
    const active = this.#active;
    if (active === undefined) return undefined;
    const tail = active.depsTail;
    const next = (tail === undefined ? active.deps : tail.nextDep)?.dep;
    return next instanceof QueryNode && next.family === family && next.key === key ? next : undefined;
  }

  #lookup(family: Family, key: unknown): QueryNode {
    const id = family.intern(key);
    const known = family.nodes.get(id);
    if (known !== undefined) return known;
    const node = new QueryNode(family, { key, id, serial: ++this.#made });
    family.nodes.set(id, node);
    this.suspect(node);
    return node;
  }

  #hit(node: QueryNode): void {
    node.family.hits++;
    if (this.#checked !== undefined) this.#recheck(node, this.#checked);
  }

  /** Brings a stale node up to date: runs it if a value it read changed, in the order it read them. */
  #freshen(node: QueryNode): void {
    if ((node.flags & DIRTY) === 0 && node.cycle === undefined) {
      for (let link: Link | undefined = node.deps; link !== undefined; link = link.nextDep) {
        if (!this.#settled(asNode(link.dep))) node.flags |= DIRTY;
        if ((node.flags & DIRTY) !== 0) break;
        if ((node.flags & PENDING) === 0) return; // what ran below asked for this node, so it has been done
      }
      if ((node.flags & STALE) === PENDING) {
        node.flags &= ~PENDING;
        this.#hit(node);
        return;
      }
    }
    if ((node.flags & RUNNING) === 0) this.#run(node);
  }

  /** Brings a dependency up to date; a change marks its readers. False if it is being computed: it may change yet. */
  #settled(dep: QueryNode | InputNode): boolean {
    if (dep instanceof InputNode) {
      if ((dep.flags & DIRTY) !== 0) this.#refresh(dep);
      return true;
    }
    if ((dep.flags & RUNNING) === 0 && (dep.flags & STALE) !== 0) this.#freshen(dep);
    return (dep.flags & RUNNING) === 0;
  }

  #refresh(node: InputNode): void {
    node.flags = CLEAN;
    const old = node.value;
    node.value = node.owner.current(node);
    if (old !== node.value && !node.owner.sameInput(node, old, node.value)) this.#changed(node);
  }

  /** Tells the marked readers of a changed node that they are to run. */
  #changed(node: ReactiveNode): void {
    if (node.subs !== undefined) this.#system.shallowPropagate(node.subs);
  }

  #run(node: QueryNode): void {
    const { family } = node;
    const active = this.#active;
    const activeRun = this.#activeRun;
    family.runs++;
    restartReads(node);
    const depth = this.#stack.depth;
    let outcome: unknown;
    try {
      this.#stack.enter(node); // first: what runs but is not on the stack, no one could clean up after an overflow
      node.flags = family.clean | RUNNING | DIRTY; // dirty until it has ended, so that a fault leaves it to be run again
      this.#active = node;
      this.#activeRun = ++this.#runs;
      outcome = family.compute(node.key);
    } catch (error) {
      if (isFault(error)) {
        this.#stack.abandon(depth, invalidate);
        throw error;
      }
      outcome = family.failure(node.id, error);
    } finally {
      this.#active = active;
      this.#activeRun = activeRun;
      this.#dropReads(node, node.depsTail === undefined ? node.deps : node.depsTail.nextDep);
    }
    const verdict = this.#stack.leave();
    if (verdict.kind === "free") this.#settle(node, outcome, undefined);
    else if (verdict.kind === "cycle") this.#closeCycle(verdict.members, new Failure(verdict.error));
  }

  #settle(node: QueryNode, outcome: unknown, cycle: readonly QueryNode[] | undefined): void {
    const { family } = node;
    node.flags = family.clean | DIRTY; // `same` may throw
    for (const left of node.cycle ?? []) this.suspect(left); // it may have been what kept them
    node.cycle = cycle;
    if (outcome instanceof Failure) family.errors++;
    const cutOff = family.sameOutcome(node.outcome, outcome);
    node.flags = family.clean;
    if (cutOff) {
      family.cutoffs++;
    } else {
      node.outcome = outcome;
      this.#changed(node);
    }
  }

  /** Gives every member the error, and the reads of all of them. */
  #closeCycle(members: readonly QueryNode[], failure: Failure): void {
    const below = new Set<ReactiveNode>();
    for (const member of members) {
      for (let link = member.deps; link !== undefined; link = link.nextDep) below.add(link.dep);
    }
    for (const member of members) {
      const known = new Set<ReactiveNode>();
      for (let link = member.deps; link !== undefined; link = link.nextDep) known.add(link.dep);
      const run = ++this.#runs;
      for (const dep of below) if (!known.has(dep)) this.#system.link(dep, member, run);
      this.#settle(member, failure, members);
    }
  }

  #dropReads(node: QueryNode, from: Link | undefined): void {
    for (let link = from; link !== undefined; ) link = this.#system.unlink(link, node);
  }

  #forget(node: QueryNode): void {
    const { nodes } = node.family;
    if (nodes.get(node.id) !== node) return; // went with its cycle, and there may be a new one in its place
    nodes.delete(node.id);
    this.#dropReads(node, node.deps);
    invalidate(node);
    this.forgotten++;
  }

  /**
   * Computes a valid node again, recording nothing. A hit while that goes on is checked once per revision only:
   * without the limit each check would compute everything below as often as there are ways down to it.
   */
  #recheck(node: QueryNode, checked: WeakMap<QueryNode, number>): void {
    if (node.cycle !== undefined || (this.#rechecking > 0 && checked.get(node) === this.revision)) return;
    checked.set(node, this.revision);
    const { collect } = this;
    const active = this.#active;
    this.#active = undefined;
    this.collect = undefined;
    this.#rechecking++;
    let outcome: unknown;
    try {
      outcome = node.family.compute(node.key);
    } catch (error) {
      if (isFault(error)) throw error;
      outcome = node.family.failure(node.id, error);
    } finally {
      this.#active = active;
      this.collect = collect;
      this.#rechecking--;
    }
    if (!node.family.sameOutcome(node.outcome, outcome)) {
      throw new EngineRecheckError(node.label, plain(node.outcome), plain(outcome));
    }
  }
}

/** Stale, and somebody still depends on it: one who has lost its last reader meanwhile may be forgotten already. */
const isWanting = (node: QueryNode): boolean => (node.flags & STALE) !== 0 && (node.subs !== undefined || node.pins > 0);

/** Puts what a node read last and is not known to be valid on top, the first read uppermost. Tells whether there is any. */
function pushStaleReads(path: QueryNode[], node: QueryNode): boolean {
  const before = path.length;
  for (let link: Link | undefined = node.depsTail; link !== undefined; link = link.prevDep) {
    if (link.dep instanceof QueryNode && (link.dep.flags & STALE) !== 0) path.push(link.dep);
  }
  return path.length > before;
}

/** Makes the next read of a node its first; what is not read again is dropped when the run has ended. */
function restartReads(node: { depsTail?: Link | undefined }): void {
  node.depsTail = undefined;
}

/** Leaves a node to be run again. */
function invalidate(node: QueryNode): void {
  node.flags = node.family.clean | DIRTY;
}

function plain(outcome: unknown): unknown {
  return outcome instanceof Failure ? outcome.error : outcome;
}
