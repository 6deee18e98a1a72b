import type { Link, ReactiveNode } from "alien-signals/system";
import { EngineInvariantError, invariant, QueryError } from "./errors.ts";
import { same } from "./same.ts";
import type { QueryDef } from "./types.ts";

/** Flags of alien-signals (a `const enum`, so not importable under type stripping), named by what they mean here. */
export const CLEAN = 1;
/** In place of `CLEAN` for a result that is settled as soon as it is marked: marks go no further, and the graph is told. */
const WATCHED = 2;
/** Being computed, or waiting for the head of its cycle to be. */
export const RUNNING = 4;
/** A value it read changed: run it again. */
export const DIRTY = 16;
/** Something below changed: look whether a value it read did. */
export const PENDING = 32;
/** Not known to be valid. */
export const STALE: number = DIRTY | PENDING;

/** What a failed query leaves in place of a value; a class of its own so that no result can be mistaken for it. */
export class Failure {
  readonly error: QueryError;

  constructor(error: QueryError) {
    this.error = error;
  }
}

/** Stands for "never computed"; `undefined` is a legal result. */
export const UNSET: unique symbol = Symbol("unset");

/** A query with its types erased: definition, nodes and counters. */
export class Family {
  readonly name: string;
  readonly nodes = new Map<unknown, QueryNode>();
  readonly compute: (key: unknown) => unknown;
  readonly same: (a: unknown, b: unknown) => boolean;
  readonly intern: (key: unknown) => unknown;
  /** Flags of a result that is valid. */
  readonly clean: number;
  runs = 0;
  hits = 0;
  cutoffs = 0;
  errors = 0;

  constructor(name: string, { compute, same, intern, eager }: Pick<Family, "compute" | "same" | "intern"> & { readonly eager: boolean }) {
    this.name = name;
    this.compute = compute;
    this.same = same;
    this.intern = intern;
    this.clean = eager ? WATCHED : CLEAN;
  }

  /** Whether two outcomes are interchangeable: values by `same`, failures by message. */
  sameOutcome(a: unknown, b: unknown): boolean {
    if (a === UNSET) return false;
    if (a instanceof Failure) return b instanceof Failure && a.error.message === b.error.message;
    return !(b instanceof Failure) && this.same(a, b);
  }

  /** What a throw of `compute` is remembered as; an error that came from below stays what it is. */
  failure(id: unknown, error: unknown): Failure {
    return new Failure(error instanceof QueryError ? error : new QueryError(this.name, String(id), error));
  }
}

/** Erases the types of a definition. The only place where a key or value is taken at its word. */
export function familyOf<K, V>(def: QueryDef<K, V>): Family {
  const equal = def.same;
  const id = def.id;
  return new Family(def.name, {
    compute: (key) => def.compute(key as K),
    same: equal === undefined ? same : (a, b) => a === b || equal(a as V, b as V),
    intern: id === undefined ? (key) => primitive(def.name, key) : (key) => id(key as K),
    eager: def.eager === true,
  });
}

function primitive(name: string, key: unknown): unknown {
  const isPrimitive = key === null || (typeof key !== "object" && typeof key !== "function");
  invariant(isPrimitive && typeof key !== "symbol", `query ${name}: keys that are not primitive need an id function`);
  return key;
}

/** One remembered query result: a vertex that reads and is read. */
export class QueryNode implements ReactiveNode {
  deps?: Link;
  depsTail?: Link;
  subs?: Link;
  subsTail?: Link;
  flags: number;
  readonly family: Family;
  readonly key: unknown;
  readonly id: unknown;
  /** Tells it from the others of its graph. */
  readonly serial: number;
  outcome: unknown = UNSET;
  /** How many leases hold it directly. */
  pins = 0;
  /** Waiting to be looked at by `sweep`. */
  queued = false;
  /** The members of the cycle it is on; it then depends on all that they read, see `Graph`. */
  cycle: readonly QueryNode[] | undefined;

  constructor(family: Family, { key, id, serial }: Pick<QueryNode, "key" | "id" | "serial">) {
    this.family = family;
    this.flags = family.clean | DIRTY;
    this.key = key;
    this.id = id;
    this.serial = serial;
  }

  get label(): string {
    return `${this.family.name}(${String(this.id)})`;
  }
}

/** Ways to read a table. */
export type InputRead = "row" | "has" | "list" | "keys" | "indexKeys" | "all";

/** What the graph asks of the table behind an input node. */
export interface InputOwner {
  readonly name: string;
  /** The value the read has now. */
  current(node: InputNode): unknown;
  /** Whether two values of the read are interchangeable. */
  sameInput(node: InputNode, a: unknown, b: unknown): boolean;
  /** Forgets the node: nobody reads it any more. */
  drop(node: InputNode): void;
}

/** One read of a table that somebody depends on: a vertex that is only read. Rows nobody reads have none. */
export class InputNode implements ReactiveNode {
  subs?: Link;
  subsTail?: Link;
  flags: number = CLEAN;
  readonly owner: InputOwner;
  readonly read: InputRead;
  readonly index: string;
  readonly key: string;
  /** The value readers saw last. */
  value: unknown;
  queued = false;

  constructor(owner: InputOwner, read: InputRead, at: { readonly index: string; readonly key: string }) {
    this.owner = owner;
    this.read = read;
    this.index = at.index;
    this.key = at.key;
    this.value = owner.current(this);
  }
}

/** Narrows a vertex of the graph underneath. */
export function asNode(node: ReactiveNode): QueryNode | InputNode {
  if (node instanceof QueryNode || node instanceof InputNode) return node;
  throw new EngineInvariantError("foreign node in the graph");
}
