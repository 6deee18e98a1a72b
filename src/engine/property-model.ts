/**
 * Test support: random query programs, run both by an engine and by a naive model that computes from scratch and notes
 * what was read. Imported by tests only.
 */
import fc from "fast-check";
import { createEngine, type Engine, type EngineOptions, type InputRef, type Query, QueryError, type Table } from "./index.ts";

/** A row of the one table: a number, and the index keys it stands under. */
export interface Row {
  readonly v: number;
  readonly ns: readonly string[];
}

/** One step of a query. `at` and `q` are shifted by the query's key, so that keys differ in what they read. */
export type Op =
  | { readonly op: "get" | "has" | "list" | "keys" | "throwIf"; readonly at: number }
  | { readonly op: "all" | "indexKeys" }
  | { readonly op: "call" | "try"; readonly q: number }
  | { readonly op: "if"; readonly at: number; readonly yes: readonly Op[]; readonly no: readonly Op[] };

/** A query: its steps, and the modulus that makes different inputs give equal results. */
export interface Program {
  readonly ops: readonly Op[];
  readonly mod: number;
  readonly eager?: true;
}

/** A change of one row; `undefined` deletes. */
export type Edit = readonly [key: string, row: Row | undefined];

export const ROW_KEYS = ["a", "b", "c", "d"] as const;
export const NAMESPACES = ["x", "y", "z"] as const;
/** Each program is asked with these keys. */
export const KEYS = [0, 1] as const;

const rowArb: fc.Arbitrary<Row> = fc.record({ v: fc.nat(3), ns: fc.uniqueArray(fc.constantFrom("x", "y"), { maxLength: 2 }) });

export const editArb: fc.Arbitrary<Edit> = fc.tuple(fc.constantFrom(...ROW_KEYS), fc.option(rowArb, { nil: undefined, freq: 3 }));

/** Programs of which number i asks only higher ones, or any (then there may be cycles). */
export function programsArb(shape: "acyclic" | "any"): fc.Arbitrary<readonly Program[]> {
  return fc.integer({ min: 2, max: 6 }).chain((count) => {
    const targets = (i: number) => Array.from({ length: count }, (_, j) => j).filter((j) => shape === "any" || j > i);
    return fc.tuple(...Array.from({ length: count }, (_, i) => programArb(targets(i))));
  });
}

function programArb(targets: readonly number[]): fc.Arbitrary<Program> {
  const at = fc.nat(3);
  const leaf: fc.Arbitrary<Op>[] = [
    fc.record({ op: fc.constantFrom("get", "has", "list", "keys", "throwIf"), at }),
    fc.record({ op: fc.constantFrom("all", "indexKeys") }),
  ];
  if (targets.length > 0) {
    const call = fc.record({ op: fc.constantFrom("call", "try"), q: fc.constantFrom(...targets) });
    leaf.push(call, call);
  }
  const ops = fc.array(fc.oneof(...leaf), { maxLength: 3 });
  const branch: fc.Arbitrary<Op> = fc.record({ op: fc.constant("if"), at, yes: ops, no: ops });
  return fc.record({ ops: fc.array(fc.oneof(...leaf, branch), { minLength: 1, maxLength: 4 }), mod: fc.constantFrom(2, 3, 1000) });
}

/** Programs of which some are eager: of any, or of those that ask no other. */
export const partlyEagerArb = (which: "any" | "leaves"): fc.Arbitrary<readonly Program[]> =>
  fc
    .tuple(programsArb("acyclic"), fc.nat(0x3f))
    .map(([programs, mask]) =>
      programs.map((program, i) =>
        ((mask >> i) & 1) === 1 && (which === "any" || !program.ops.some(asksOther)) ? { ...program, eager: true } : program,
      ),
    );

const asksOther = (op: Op): boolean =>
  op.op === "call" || op.op === "try" || (op.op === "if" && (op.yes.some(asksOther) || op.no.some(asksOther)));

/** What a program may do; the engine and the model both offer it. */
export interface World {
  get(key: string): Row | undefined;
  has(key: string): boolean;
  list(ns: string): readonly Row[];
  keys(ns: string): readonly string[];
  all(): readonly Row[];
  indexKeys(): readonly string[];
  call(q: number, key: number): number;
  try(q: number, key: number): number | undefined;
}

/** Runs a program. */
export function runProgram(program: Program, key: number, world: World): number {
  const seen = program.ops.flatMap((op) => step(op, key, world));
  let hash = 7;
  for (const char of JSON.stringify(seen)) hash = (hash * 31 + char.charCodeAt(0)) % 1_000_003;
  return hash % program.mod;
}

/** What a step sees. */
function step(op: Op, key: number, world: World): readonly unknown[] {
  switch (op.op) {
    case "get":
      return [world.get(rowKey(op.at + key))?.v];
    case "has":
      return [world.has(rowKey(op.at + key))];
    case "list":
      return [world.list(namespace(op.at + key))];
    case "keys":
      return [world.keys(namespace(op.at + key))];
    case "all":
      return [world.all()];
    case "indexKeys":
      return [world.indexKeys()];
    case "throwIf":
      if (world.get(rowKey(op.at))?.v === 1) throw new Error(`boom ${op.at}`);
      return [];
    case "call":
      return [world.call(op.q, (key + op.q) % KEYS.length)];
    case "try":
      return [world.try(op.q, key) ?? "failed"];
    case "if":
      return (world.has(rowKey(op.at)) ? op.yes : op.no).flatMap((one) => step(one, key, world));
  }
}

const rowKey = (at: number): string => ROW_KEYS[at % ROW_KEYS.length] ?? "a";
const namespace = (at: number): string => NAMESPACES[at % NAMESPACES.length] ?? "x";

/** An engine loaded with programs. `runs` lists the queries computed since it was last emptied. */
export interface Loaded {
  readonly engine: Engine;
  readonly table: Table<Row>;
  readonly queries: readonly Query<number, number>[];
  readonly runs: string[];
}

/** Loads programs into a fresh engine. */
export function load(programs: readonly Program[], rows: ReadonlyMap<string, Row>, options: EngineOptions = {}): Loaded {
  const engine = createEngine(options);
  const table = engine.table<Row>({
    name: "t",
    indexes: { ns: (row) => row.ns },
    same: (a, b) => JSON.stringify(a) === JSON.stringify(b),
  });
  const runs: string[] = [];
  const queries: Query<number, number>[] = [];
  const world: World = {
    get: (key) => table.get(key),
    has: (key) => table.has(key),
    list: (ns) => table.list("ns", ns),
    keys: (ns) => table.keys("ns", ns),
    all: () => table.all(),
    indexKeys: () => table.indexKeys("ns"),
    call: (q, key) => at(queries, q)(key),
    try(q, key) {
      const result = at(queries, q).try(key);
      return result.ok ? result.value : undefined;
    },
  };
  programs.forEach((program, i) => {
    const compute = (key: number) => {
      runs.push(nodeName(i, key));
      return runProgram(program, key, world);
    };
    queries.push(engine.query({ name: `q${i}`, compute, ...(program.eager === true && { eager: true }) }));
  });
  for (const [key, row] of rows) table.set(key, row);
  return { engine, table, queries, runs };
}

/** Applies edits as one batch to an engine and to the model's rows. */
export function applyEdits(loaded: Loaded, rows: Map<string, Row>, edits: readonly Edit[]): boolean {
  for (const [key, row] of edits) {
    if (row === undefined) rows.delete(key);
    else rows.set(key, row);
  }
  return loaded.engine.batch(() => {
    for (const [key, row] of edits) {
      if (row === undefined) loaded.table.delete(key);
      else loaded.table.set(key, row);
    }
  });
}

/** What an engine says, comparable with the model. */
export function ask(loaded: Loaded, q: number, key: number): string {
  const result = at(loaded.queries, q).try(key);
  return result.ok ? `${result.value}` : result.error.message;
}

/** One result of the model: the outcome and, in order, what was directly read and seen. */
export interface ModelNode {
  readonly outcome: string;
  readonly reads: ReadonlyMap<string, string>;
}

/** Computes everything from scratch. Acyclic programs only. Reads are named like `row:a`, `list:x`, `q1(0)`. */
export class Model {
  readonly #programs: readonly Program[];
  readonly #rows: ReadonlyMap<string, Row>;
  readonly #nodes = new Map<string, ModelNode>();

  constructor(programs: readonly Program[], rows: ReadonlyMap<string, Row>) {
    this.#programs = programs;
    this.#rows = rows;
  }

  node(q: number, key: number): ModelNode {
    const known = this.#nodes.get(nodeName(q, key));
    if (known !== undefined) return known;
    const reads = new Map<string, string>();
    const node = { outcome: this.#outcome(q, key, reads), reads };
    this.#nodes.set(nodeName(q, key), node);
    return node;
  }

  /** What a recorded read would give now. */
  value(read: string): string {
    const [kind = "", name = ""] = read.split(":");
    const query = /^q(\d+)\((\d+)\)$/.exec(read);
    if (query !== null) return this.node(Number(query[1]), Number(query[2])).outcome;
    const sorted = [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1));
    const under = sorted.filter(([, row]) => row.ns.includes(name));
    const values: Record<string, unknown> = {
      row: this.#rows.get(name),
      has: this.#rows.has(name),
      list: under.map(([, row]) => row),
      keys: under.map(([key]) => key),
      all: sorted.map(([, row]) => row),
      indexKeys: [...new Set(sorted.flatMap(([, row]) => row.ns))].sort(),
    };
    return JSON.stringify(values[kind]) ?? "absent";
  }

  /** Names of the queries and inputs below a node, itself included. */
  below(q: number, key: number): ReadonlySet<string> {
    const seen = new Set([nodeName(q, key)]);
    for (const name of seen) {
      const query = /^q(\d+)\((\d+)\)$/.exec(name);
      if (query !== null) for (const read of this.node(Number(query[1]), Number(query[2])).reads.keys()) seen.add(read);
    }
    return seen;
  }

  #outcome(q: number, key: number, reads: Map<string, string>): string {
    const input = <T>(read: string, value: T): T => {
      reads.set(read, this.value(read));
      return value;
    };
    const parsed = <T>(read: string): T => input(read, JSON.parse(this.value(read)));
    const call = (to: number, toKey: number): string => input(nodeName(to, toKey), this.node(to, toKey).outcome);
    const world: World = {
      get: (one) => input(`row:${one}`, this.#rows.get(one)),
      has: (one) => input(`has:${one}`, this.#rows.has(one)),
      list: (ns) => parsed(`list:${ns}`),
      keys: (ns) => parsed(`keys:${ns}`),
      all: () => parsed("all:"),
      indexKeys: () => parsed("indexKeys:"),
      call(to, toKey) {
        const outcome = call(to, toKey);
        if (Number.isNaN(Number(outcome))) throw new QueryError(outcome, "", "");
        return Number(outcome);
      },
      try(to, toKey) {
        const outcome = Number(call(to, toKey));
        return Number.isNaN(outcome) ? undefined : outcome;
      },
    };
    try {
      return String(runProgram(at(this.#programs, q), key, world));
    } catch (error) {
      if (error instanceof QueryError) return error.queryName; // the message of the query below, unchanged
      return `query ${nodeName(q, key)} failed: ${error instanceof Error ? error.message : ""}`;
    }
  }
}

/** Names a recorded read of the engine as the model does. */
export function refName(ref: InputRef): string {
  if (!("index" in ref)) return `${ref.read}:${ref.key}`;
  if (ref.index === "*") return "all:";
  return ref.key === "*" ? "indexKeys:" : `${ref.read}:${ref.key}`;
}

/** Name of one result. */
export function nodeName(q: number, key: number): string {
  return `q${q}(${key})`;
}

/** All (program, key) pairs. */
export function allNodes(programs: readonly Program[]): readonly (readonly [q: number, key: number])[] {
  return programs.flatMap((_, q) => KEYS.map((key) => [q, key] as const));
}

function at<T>(items: readonly T[], i: number): T {
  const item = items[i];
  if (item === undefined) throw new Error(`no item ${i}`);
  return item;
}
