import type { Link, ReactiveNode } from "alien-signals/system";
import { CallStack } from "./call-stack.ts";
import { invariant, isFault } from "./errors.ts";
import type { OverlayCalls } from "./graph.ts";
import { InputTable } from "./input-table.ts";
import { asNode, Failure, type Family, InputNode, QueryNode, RUNNING, STALE, UNSET } from "./nodes.ts";
import { TableView } from "./table-view.ts";
import type { OverlayChange } from "./types.ts";

/** One result computed inside an overlay. */
interface Cell {
  readonly family: Family;
  readonly id: unknown;
  readonly label: string;
  /** UNSET while it runs, while its cycle is open, and while what it read is looked at. */
  outcome: unknown;
  /** It was computed, or is being computed. */
  entered: boolean;
}

/**
 * The inputs with some changes on top, for the time of one evaluation. Plain memoised recursion: no edges are made and
 * nothing of the base is written. A valid base result serves as it is when no recorded read below it is touched by a
 * change, or when all that it read comes out the same: a change stops where it stops in the graph.
 */
export class Overlay implements OverlayCalls {
  readonly #views = new Map<InputTable<unknown>, TableView>();
  readonly #cells = new Map<Family, Map<unknown, Cell>>();
  /** All base nodes above a changed input, found from the changes upwards: costs in proportion to their reach. */
  readonly #touched: ReadonlySet<ReactiveNode>;
  readonly #runs = new Map<string, number>();
  readonly #stack = new CallStack<Cell>();

  constructor(changes: readonly OverlayChange[], owns: (table: InputTable<unknown>) => boolean) {
    const rows = new Map<InputTable<unknown>, Map<string, unknown>>();
    for (const { table, key, value } of changes) {
      invariant(table instanceof InputTable && owns(table), "overlay of a table of another engine");
      let mine = rows.get(table);
      if (mine === undefined) {
        mine = new Map();
        rows.set(table, mine);
      }
      mine.set(key, value);
    }
    for (const [table, mine] of rows) this.#views.set(table, new TableView(table, mine));
    this.#touched = readersOf([...this.#views.values()].flatMap((view) => view.touched()));
  }

  /** How often each query was computed so far. */
  get runs(): ReadonlyMap<string, number> {
    return this.#runs;
  }

  /** A table as this overlay sees it. */
  view(table: InputTable<unknown>): TableView {
    let view = this.#views.get(table);
    if (view === undefined) {
      view = new TableView(table, new Map());
      this.#views.set(table, view);
    }
    return view;
  }

  /** The outcome of a query under this overlay. */
  call(family: Family, key: unknown): unknown {
    const found = this.#find(family, key);
    if (found instanceof QueryNode) return found.outcome;
    return found.outcome === UNSET ? new Failure(this.#stack.cycle(found)) : found.outcome;
  }

  /** Where the outcome stands: in the base, or in a cell, where it is UNSET while it runs or its cycle is open. */
  #find(family: Family, key: unknown): QueryNode | Cell {
    const id = family.intern(key);
    const node = family.nodes.get(id);
    const base = node !== undefined && (node.flags & (STALE | RUNNING)) === 0 ? node : undefined;
    if (base !== undefined && !this.#touched.has(base)) return base;
    let cells = this.#cells.get(family);
    if (cells === undefined) {
      cells = new Map();
      this.#cells.set(family, cells);
    }
    let cell = cells.get(id);
    if (cell === undefined) {
      cell = { family, id, label: `${family.name}(${String(id)})`, outcome: UNSET, entered: false };
      cells.set(id, cell);
      if (base !== undefined && this.#readsTheSame(base, cell)) cell.outcome = base.outcome;
    }
    // what is looked at may be asked for by what it read: then it is computed there
    if (cell.outcome === UNSET && !cell.entered) this.#run(cell, key, node);
    return cell;
  }

  /**
   * Whether all that a result was made from is what it was, looked at in the order in which it was read: as long as
   * nothing differs, computing it would ask for the same.
   */
  #readsTheSame(base: QueryNode, cell: Cell): boolean {
    if (base.cycle !== undefined) return false;
    for (let link: Link | undefined = base.deps; link !== undefined; link = link.nextDep) {
      const dep = asNode(link.dep);
      if (!this.#touched.has(dep)) continue;
      if (dep instanceof InputNode || this.#find(dep.family, dep.key).outcome !== dep.outcome || cell.entered) return false;
    }
    return true;
  }

  #run(cell: Cell, key: unknown, base: QueryNode | undefined): void {
    const { family, id } = cell;
    const depth = this.#stack.depth;
    cell.entered = true;
    this.#runs.set(family.name, (this.#runs.get(family.name) ?? 0) + 1);
    this.#stack.enter(cell);
    let outcome: unknown;
    try {
      outcome = family.compute(key);
    } catch (error) {
      if (isFault(error)) {
        this.#stack.abandon(depth, (one) => this.#cells.get(one.family)?.delete(one.id));
        throw error;
      }
      outcome = family.failure(id, error);
    }
    const verdict = this.#stack.leave();
    if (verdict.kind === "free") {
      cell.outcome = base !== undefined && family.sameOutcome(base.outcome, outcome) ? base.outcome : outcome;
    } else if (verdict.kind === "cycle") {
      for (const member of verdict.members) member.outcome = new Failure(verdict.error);
    }
  }
}

/** The nodes above some inputs: the exact reach of a change. */
function readersOf(inputs: Iterable<ReactiveNode>): ReadonlySet<ReactiveNode> {
  const seen = new Set<ReactiveNode>(inputs);
  for (const node of seen) {
    // a set's iteration visits what is added on the way
    for (let link = node.subs; link !== undefined; link = link.nextSub) seen.add(link.sub);
  }
  return seen;
}
