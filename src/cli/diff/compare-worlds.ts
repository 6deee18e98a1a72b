import type { Registry } from "@bufbuild/protobuf";
import type { Problem } from "../../config/problem.ts";
import type { LeftOut } from "../../generate/patches/patched-kind.ts";
import type { NodeFacts } from "../../generate/proxy-view.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { partsOf } from "../../wire/stacked-resources.ts";
import type { CurrentMesh } from "./current-mesh.ts";
import { type MeshProxy, meshProxies } from "./mesh-proxies.ts";
import { createAsker, type Offered } from "./offered-resources.ts";
import type { WantedChange } from "./wanted-changes.ts";

/** One resource that comes out differently. */
export interface ResourceChange {
  readonly typeUrl: string;
  readonly name: string;
  readonly change: "added" | "changed" | "removed" | "failed";
  readonly before: Encoded | undefined;
  readonly after: Encoded | undefined;
  /** Of a resource that could not be made any more: why. */
  readonly message?: string;
}

/** Proxies that a change concerns in the same way. */
export interface ProxyClass {
  readonly proxies: readonly MeshProxy[];
  /** Empty where they are not touched. */
  readonly resources: readonly ResourceChange[];
}

/** What a change would do. */
export interface Comparison {
  readonly classes: readonly ProxyClass[];
  /** How often each query had to be computed for it. */
  readonly runs: ReadonlyMap<string, number>;
  /** Patches of EnvoyFilters that it leaves out. */
  readonly leftOut: readonly LeftOut[];
  /** What it makes wrong between objects. */
  readonly problems: readonly Problem[];
}

/** What to compare. */
export interface ComparisonInput {
  readonly current: CurrentMesh;
  readonly change: WantedChange;
  readonly registry: Registry;
  /** Undefined: those that the configuration tells of. */
  readonly proxies: readonly MeshProxy[] | undefined;
}

/** Proxies configured alike, of which one is asked about. */
interface Alike {
  readonly facts: NodeFacts;
  readonly watches: MeshProxy["watches"];
  readonly proxies: MeshProxy[];
}

/**
 * What proxies are offered now and what they would be offered with some changes on top. The current configuration is generated first; then
 * only what read something that changes is computed again.
 */
export function compareWorlds({ current, change, registry, proxies }: ComparisonInput): Comparison {
  const { world, leftOut } = current;
  const asker = createAsker(world, registry);
  // What a proxy says of its pod is left aside: before there is an object of it there is no such proxy.
  const ask = ({ facts, watches }: Alike): Offered => asker.offered({ ...world.view(facts), claim: "" }, watches);
  const now = proxies ?? meshProxies(world);
  const before = new Map([...alikeOf(now, now)].map(([id, alike]) => [id, ask(alike)]));
  const known = { problems: world.problems.all(), leftOut: leftOut.length };
  const tried = tryOut(current, change, (runs) => {
    const groups = alikeOf(now, proxies ?? meshProxies(world));
    const after = new Map([...groups].map(([id, alike]) => [id, ask(alike)]));
    return { groups, after, runs: new Map(runs()), problems: world.problems.all(), leftOut: leftOut.slice(known.leftOut) };
  });
  const differences = createDifferences();
  const all = [...tried.groups].map(([id, alike]): ProxyClass => {
    const old = before.get(id) ?? ask(alike);
    return { proxies: alike.proxies, resources: changesOf(old, tried.after.get(id) ?? new Map(), differences) };
  });
  const old = new Set(known.problems.map((problem) => JSON.stringify(problem)));
  const problems = tried.problems.filter((problem) => !old.has(JSON.stringify(problem)));
  return { classes: joined(all), runs: tried.runs, leftOut: tried.leftOut, problems };
}

/** Evaluates with the change on top, of the inputs and of the credentials. */
function tryOut<T>({ world, credentials }: CurrentMesh, change: WantedChange, fn: (runs: () => ReadonlyMap<string, number>) => T): T {
  const { objects } = credentials;
  credentials.objects = change.after;
  try {
    return world.engine.overlay(change.inputs, fn);
  } finally {
    credentials.objects = objects;
  }
}

/**
 * Groups proxies that are alike now and will be. One that the change brings, or takes away, is there for what a proxy like it is offered.
 * What is a gateway in one of the two is one: proxies do not change their type.
 */
function alikeOf(now: readonly MeshProxy[], then: readonly MeshProxy[]): ReadonlyMap<string, Alike> {
  const old = new Map(now.map((proxy) => [proxy.id, proxy]));
  const next = new Map(then.map((proxy) => [proxy.id, proxy]));
  const groups = new Map<string, Alike>();
  for (const id of new Set([...old.keys(), ...next.keys()])) {
    const both = [old.get(id), next.get(id)].filter((proxy) => proxy !== undefined);
    const chosen = both.find(({ type }) => type === "router") ?? both[0];
    if (chosen === undefined) continue;
    const key = [old.get(id)?.alike, next.get(id)?.alike].join("\n");
    const group = groups.get(key) ?? { facts: chosen.facts, watches: chosen.watches, proxies: [] };
    group.proxies.push(chosen);
    groups.set(key, group);
  }
  return groups;
}

/** Classes that differ in nothing but who they are become one. */
function joined(classes: readonly ProxyClass[]): readonly ProxyClass[] {
  const groups = Map.groupBy(classes, ({ resources }) =>
    resources
      .map(({ typeUrl, name, before, after, message }) => [typeUrl, name, before?.version, after?.version, message].join())
      .join("\n"),
  );
  return [...groups.values()].map((group) => ({
    proxies: group.flatMap(({ proxies }) => proxies),
    resources: group[0]?.resources ?? [],
  }));
}

/** Finds what differs between two maps of resources, once for all who share them. */
type Differences = (before: ResourceSet["resources"], after: ResourceSet["resources"]) => readonly ResourceChange[];

function createDifferences(): Differences {
  const known = new WeakMap<object, WeakMap<object, readonly ResourceChange[]>>();
  const differences: Differences = (before, after) => {
    if (before === after) return [];
    const found = known.get(before) ?? new WeakMap<object, readonly ResourceChange[]>();
    known.set(before, found);
    const [old, now] = [partsOf(before), partsOf(after)];
    const inParts = old.length > 1 && old.length === now.length;
    const made =
      found.get(after) ?? (inParts ? moved(old.flatMap((part, at) => differences(part, now[at] ?? part))) : plain(before, after));
    found.set(after, made);
    return made;
  };
  return differences;
}

function plain(before: ResourceSet["resources"], after: ResourceSet["resources"]): readonly ResourceChange[] {
  const changes: ResourceChange[] = [];
  for (const [name, old] of before) {
    const now = after.get(name);
    if (now === undefined) changes.push({ typeUrl: old.typeUrl, name, change: "removed", before: old, after: undefined });
    else if (now.version !== old.version) changes.push({ typeUrl: old.typeUrl, name, change: "changed", before: old, after: now });
  }
  for (const [name, now] of after)
    if (!before.has(name)) changes.push({ typeUrl: now.typeUrl, name, change: "added", before: undefined, after: now });
  return changes;
}

/** What goes from one part and comes in another has stayed, or changed. */
function moved(changes: readonly ResourceChange[]): readonly ResourceChange[] {
  const byName = Map.groupBy(changes, ({ name }) => name);
  if (byName.size === changes.length) return changes;
  return [...byName.values()].flatMap((both) => {
    const [before, after] = [both.find((one) => one.before !== undefined)?.before, both.find((one) => one.after !== undefined)?.after];
    if (before === undefined || after === undefined) return both;
    return before.version === after.version
      ? []
      : [{ typeUrl: after.typeUrl, name: after.name, change: "changed" as const, before, after }];
  });
}

const NONE: ResourceSet = { resources: new Map(), failed: [] };

function changesOf(before: Offered, after: Offered, differences: Differences): readonly ResourceChange[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((typeUrl) => {
    const [old, now] = [before.get(typeUrl) ?? NONE, after.get(typeUrl) ?? NONE];
    if (old === now) return [];
    const changes = differences(old.resources, now.resources);
    const failed = now.failed
      .filter(({ name }) => !old.failed.some((one) => one.name === name))
      .map(
        ({ name, message }): ResourceChange => ({
          typeUrl,
          name,
          change: "failed",
          before: old.resources.get(name),
          after: undefined,
          message,
        }),
      );
    const names = new Set(failed.map(({ name }) => name));
    return [...changes.filter(({ name }) => !names.has(name)), ...failed].sort((a, b) => (a.name < b.name ? -1 : 1));
  });
}
