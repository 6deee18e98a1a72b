import type { Encoded, ResourceSet } from "../wire/encoded.ts";
import { type Diff, diff, EMPTY_SET, NO_DIFF, type PairMemo, remember, withoutRemovals } from "./diff.ts";
import type { NameSet } from "./provider.ts";

/** The client does not have it. */
export const ABSENT = "";
/** The client may have any version of it, or none. No hash looks like this. */
export const UNKNOWN = "?";

/**
 * What a client holds of one type: a shared set, and the few names for which that is not true. So a stream costs a reference, not a map of
 * thousands of versions.
 */
export interface Holding {
  readonly base: ResourceSet;
  /** Version by name, or `ABSENT`, or `UNKNOWN`. */
  readonly unlike: ReadonlyMap<string, string>;
}

const NO_EXCEPTIONS: ReadonlyMap<string, string> = new Map();
export const NOTHING_HELD: Holding = { base: EMPTY_SET, unlike: NO_EXCEPTIONS };

export const heldVersion = (holding: Holding, name: string): string =>
  holding.unlike.get(name) ?? holding.base.resources.get(name)?.version ?? ABSENT;

/** The resource a client holds for certain, or undefined. */
export function heldResource(holding: Holding, name: string): Encoded | undefined {
  const resource = holding.base.resources.get(name);
  return resource !== undefined && heldVersion(holding, name) === resource.version ? resource : undefined;
}

/** The holding with another belief about some names. What is believed already is not noted: a client may go on for ever to drop what it never had. */
export function believe(holding: Holding, names: Iterable<string>, version: string): Holding {
  const other = [...names].filter((name) => heldVersion(holding, name) !== version);
  if (other.length === 0) return holding;
  const unlike = new Map(holding.unlike);
  for (const name of other) unlike.set(name, version);
  return { base: holding.base, unlike };
}

/** A client that left `*` keeps only what it names. */
export function restrict(holding: Holding, names: NameSet): Holding {
  const dropped = [...holding.base.resources.keys(), ...holding.unlike.keys()].filter((name) => !names.names.has(name));
  return dropped.length === 0 ? holding : believe(holding, dropped, ABSENT);
}

const unheld: PairMemo<readonly string[], readonly string[], ReadonlyMap<string, string>> = new WeakMap();

/** Names of which a client that came back does not say that it holds them. Those of a class ask for the same and say the same, and are looked at once. */
export function notHeld(names: readonly string[], held: ReadonlyMap<string, string>): readonly string[] {
  if (held.size === 0 || names.length === 0) return names;
  return remember(unheld, [names, held], () => names.filter((name) => !held.has(name)));
}

export interface PlanOptions {
  /** Names that are sent although the client may have them; those not offered are said to be gone. */
  readonly obliged: readonly NameSet[];
  /** Names that are not said to be gone although they are not in the set: they were rejected, or could not be made. */
  readonly silent: ReadonlySet<string>;
  /** Removals wait for a later response. */
  readonly keepRemoved: boolean;
}

export interface Plan {
  readonly diff: Diff;
  /** What the client holds once it has accepted the difference. */
  readonly after: Holding;
  /** Something is left to be removed later. */
  readonly removalsLeft: boolean;
}

/** What to send so that the client comes to hold `target`. Streams without exceptions share the result. */
export function plan(holding: Holding, target: ResourceSet, options: PlanOptions): Plan {
  const goal = options.keepRemoved ? withoutRemovals(holding.base, target) : target;
  if (options.obliged.length === 0 && isAll(holding, target))
    return { diff: NO_DIFF, after: withoutExceptions(target), removalsLeft: false };
  if (holding.unlike.size > 0) return editedPlan(holding, target, options);
  if (options.obliged.length === 0)
    return { diff: diff(holding.base, goal), after: withoutExceptions(goal), removalsLeft: goal !== target };
  const key = `${options.keepRemoved} ${options.obliged.map((set) => set.id).join()} ${[...options.silent].join()}`;
  const known = remember(obligedPlans, [holding.base, target], () => new Map<string, Plan>());
  const before = known.get(key);
  if (before !== undefined) return before;
  const result = editedPlan(holding, target, options);
  if (known.size >= MOST_OBLIGED_PLANS) known.clear();
  known.set(key, result);
  return result;
}

const withoutExceptions = (base: ResourceSet): Holding => ({ base, unlike: NO_EXCEPTIONS });

const compared = new WeakMap<ReadonlyMap<string, string>, WeakMap<ResourceSet, boolean>>();

/**
 * Whether a client that came back said to hold just what it is to hold: what most say after a restart of the control plane. Those of a class say the
 * same, and are compared once.
 */
function isAll({ base, unlike }: Holding, set: ResourceSet): boolean {
  if (base !== EMPTY_SET || unlike.size === 0 || unlike.size !== set.resources.size) return false;
  const known = compared.get(unlike) ?? new WeakMap<ResourceSet, boolean>();
  compared.set(unlike, known);
  const result = known.get(set) ?? hasEach(set, unlike);
  known.set(set, result);
  return result;
}

function hasEach({ resources }: ResourceSet, versions: ReadonlyMap<string, string>): boolean {
  for (const [name, version] of versions) if (resources.get(name)?.version !== version) return false;
  return true;
}

/** Streams that hold the same and are owed the same share a plan too: a change of a thousand clusters owes each stream a thousand assignments. */
const obligedPlans: PairMemo<Map<string, Plan>> = new WeakMap();
/** So many kinds of debts for one pair are remembered: clients that ask for one name after the other would otherwise leave a plan behind for each. */
const MOST_OBLIGED_PLANS = 64;

function editedPlan(holding: Holding, target: ResourceSet, options: PlanOptions): Plan {
  const goal = options.keepRemoved ? withoutRemovals(holding.base, target) : target;
  const shared = diff(holding.base, goal);
  const after = withoutExceptions(goal);
  const edits: Edits = { send: new Map(), skip: new Set(), remove: new Set(), keep: new Set(), left: new Map(), deferred: goal !== target };
  for (const name of holding.unlike.keys()) except(edits, name, { holding, target, goal, options });
  for (const { names } of options.obliged) for (const name of names) oblige(edits, name, { holding, target, goal, options });
  return {
    diff: editsAreEmpty(edits) ? shared : edited(shared, edits),
    after: edits.left.size === 0 ? after : { base: goal, unlike: edits.left },
    removalsLeft: edits.deferred,
  };
}

/** How this stream's difference departs from the shared one. */
interface Edits {
  readonly send: Map<string, Encoded>;
  readonly skip: Set<string>;
  readonly remove: Set<string>;
  readonly keep: Set<string>;
  /** Exceptions that remain after the client has accepted. */
  readonly left: Map<string, string>;
  deferred: boolean;
}

interface Sets {
  readonly holding: Holding;
  readonly target: ResourceSet;
  /** The target, or the target and what is removed from it later. */
  readonly goal: ResourceSet;
  readonly options: PlanOptions;
}

function except(edits: Edits, name: string, { holding, target, goal, options }: Sets): void {
  const version = heldVersion(holding, name);
  const resource = target.resources.get(name);
  if (resource !== undefined) {
    const inShared = holding.base.resources.get(name)?.version !== resource.version;
    if (version !== resource.version && !inShared) edits.send.set(name, resource);
    if (version === resource.version && inShared) edits.skip.add(name);
  } else if (version === ABSENT) {
    edits.keep.add(name);
    if (goal.resources.has(name)) edits.left.set(name, ABSENT);
  } else if (options.silent.has(name) || options.keepRemoved) {
    edits.keep.add(name);
    edits.left.set(name, version);
    edits.deferred ||= !options.silent.has(name);
  } else edits.remove.add(name);
}

function oblige(edits: Edits, name: string, { holding, target, goal, options }: Sets): void {
  const resource = target.resources.get(name);
  if (resource === undefined) {
    if (options.silent.has(name)) return;
    edits.remove.add(name);
    if (goal.resources.has(name)) edits.left.set(name, ABSENT);
    else edits.left.delete(name);
  } else if (edits.skip.has(name)) edits.skip.delete(name);
  else if (holding.base.resources.get(name)?.version === resource.version) edits.send.set(name, resource);
}

const editsAreEmpty = ({ send, skip, remove, keep }: Edits): boolean =>
  send.size === 0 && skip.size === 0 && remove.size === 0 && keep.size === 0;

function edited(shared: Diff, { send, skip, remove, keep }: Edits): Diff {
  const changed = shared.changed.filter((resource) => !skip.has(resource.name) && !send.has(resource.name));
  const removed = new Set(shared.removed.filter((name) => !keep.has(name)));
  for (const name of remove) removed.add(name);
  return { changed: [...changed, ...send.values()], removed: [...removed] };
}
