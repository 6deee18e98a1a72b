import type { ReactiveNode } from "alien-signals/system";
import { CallStack } from "./call-stack.ts";
import { invariant, isFault } from "./errors.ts";
import type { OverlayCalls } from "./graph.ts";
import { InputTable } from "./input-table.ts";
import { Failure, type Family, type InputNode, type QueryNode, RUNNING, STALE, UNSET } from "./nodes.ts";
import { TableView } from "./table-view.ts";
import type { OverlayChange } from "./types.ts";

/** One result computed inside an overlay. */
interface Cell {
  readonly family: Family;
  readonly id: unknown;
  readonly label: string;
  /** UNSET while it runs or its cycle is open. */
  outcome: unknown;
}

/**
 * The inputs with some changes on top, for the time of one evaluation. Plain memoised recursion: no edges are made and
 * nothing of the base is written. A base result serves as it is when it is valid and no recorded read below it is
 * touched by a change; the recorded reads make that exact.
 */
export class Overlay implements OverlayCalls {
  readonly #views = new Map<InputTable<unknown>, TableView>();
  readonly #cells = new Map<Family, Map<unknown, Cell>>();
  /** All base nodes above a changed input, found from the changes upwards: costs in proportion to their reach. */
  readonly #touched: ReadonlySet<ReactiveNode>;
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
    const id = family.intern(key);
    const base = family.nodes.get(id);
    if (base !== undefined && (base.flags & (STALE | RUNNING)) === 0 && !this.#touched.has(base)) return base.outcome;
    let cells = this.#cells.get(family);
    if (cells === undefined) {
      cells = new Map();
      this.#cells.set(family, cells);
    }
    let cell = cells.get(id);
    if (cell === undefined) {
      cell = { family, id, label: `${family.name}(${String(id)})`, outcome: UNSET };
      cells.set(id, cell);
      this.#run(cell, key, base);
    }
    if (cell.outcome === UNSET) return new Failure(this.#stack.cycle(cell));
    return cell.outcome;
  }

  #run(cell: Cell, key: unknown, base: QueryNode | undefined): void {
    const { family, id } = cell;
    const depth = this.#stack.depth;
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
function readersOf(inputs: readonly InputNode[]): ReadonlySet<ReactiveNode> {
  const seen = new Set<ReactiveNode>(inputs);
  for (const node of seen) {
    // a set's iteration visits what is added on the way
    for (let link = node.subs; link !== undefined; link = link.nextSub) seen.add(link.sub);
  }
  return seen;
}
