import { Interned } from "../../base/interned.ts";
import type { Applied } from "../../envoy/patch/apply.ts";
import type { Patch, PatchContext } from "../../envoy/patch/patch.ts";
import { NO_OUTCOME, type PatchOutcome } from "../../envoy/patch/trace.ts";
import type { ProxyView } from "../../model/proxy.ts";
import { encodedBytes } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { StackedResources, stacked } from "../../wire/stacked-resources.ts";
import { type AddedResource, addResources, nameOf } from "./added-resources.ts";
import type { PatchPlan } from "./plan.ts";

/** What all resources of one kind and one sort of proxy are patched by. */
export interface Scene {
  /** Stands for everything but the plan. */
  readonly id: string;
  /** The patches of the plan that are for this kind of resource. */
  readonly patches: readonly Patch[];
  /** Side that an added resource stands on. */
  readonly adds: (patch: Patch) => boolean;
  /** The side a resource stands on and the patches that may concern it, by what is cheap to know. */
  readonly concerning: (resource: Encoded) => { readonly context: PatchContext; readonly patches: readonly Patch[] };
  /** Applies patches to a resource, at once, or in steps where there may be much of it. Called once per resource and list of patches. */
  readonly apply: (resource: Encoded, patches: readonly Patch[], context: PatchContext) => Applied | Generator<void, Applied>;
}

/** How one kind of resource is patched. */
export interface KindRules {
  readonly typeUrl: string;
  /** Undefined where the plan has nothing for this kind. */
  readonly scene: (plan: PatchPlan, view: ProxyView) => Scene | undefined;
  /** Why a resource cannot be added beside those that are there. */
  readonly clash: (added: Encoded, present: ResourceSet["resources"]) => string | undefined;
  /** The resources that a patch adds to those that are there, where that is not its content under its own name. */
  readonly added?: (patch: Patch, present: ResourceSet["resources"]) => readonly Encoded[];
  /** The name that a resource has in patches, where that is another. */
  readonly patchName?: (name: string) => string;
}

/** One resource after patches. */
export interface PatchedLeaf {
  /** Undefined where it was removed. */
  readonly resource: Encoded | undefined;
  readonly outcome: PatchOutcome;
}

/** A patch that was left out of a resource. */
export interface LeftOut {
  readonly patch: string;
  readonly resource: string;
  readonly reason: string;
}

/** A set after patches, with all that is known of how it came about. */
export interface PatchedSet {
  readonly set: ResourceSet;
  readonly added: readonly AddedResource[];
  leaves(): Iterable<PatchedLeaf & { readonly name: string }>;
}

/** Lists of patches that are applied together. Everything patched by a list is kept with it, shared by all who have that list. */
interface PatchList {
  readonly patches: readonly Patch[];
  readonly context: PatchContext;
  readonly leaves: WeakMap<Encoded, PatchedLeaf>;
}

const lists = new Interned<PatchList>();

/** A scene in use: it holds its lists, so that they live as long as the plan. */
interface LiveScene extends Scene {
  readonly tell: (fault: LeftOut) => void;
  readonly lists: Map<string, PatchList>;
  readonly maps: WeakMap<ResourceSet["resources"], ResourceSet["resources"]>;
  readonly sets: WeakMap<ResourceSet, PatchedSet>;
}

/**
 * Patches the resources of one kind. A resource is patched once per list of patches that concern it, whoever asks and however they came to
 * that list, and one that no patch concerns is the same object as before: a patch splits only what it is about. Nothing is computed twice
 * and nothing is remembered by name: results live as long as the resource and the list they were made from.
 */
export class PatchedKind {
  readonly typeUrl: string;
  readonly #rules: KindRules;
  readonly #scenes = new WeakMap<PatchPlan, Map<string, LiveScene>>();

  readonly #tell: (fault: LeftOut) => void;

  /** `tell` is told of each patch that is left out of a resource, when that is found. */
  constructor(rules: KindRules, tell: (fault: LeftOut) => void) {
    this.#rules = rules;
    this.#tell = tell;
    this.typeUrl = rules.typeUrl;
  }

  /** What a proxy is offered, given what it would be offered without patches. */
  offered(plan: PatchPlan, view: ProxyView, set: ResourceSet): ResourceSet {
    return this.patched(plan, view, set)?.set ?? set;
  }

  /** The work behind `offered`, a resource each. */
  *steps(plan: PatchPlan, view: ProxyView, set: ResourceSet): Iterable<void> {
    const scene = this.#sceneOf(plan, view);
    if (scene === undefined) return;
    for (const resource of set.resources.values()) {
      yield* leafSteps(scene, resource);
      yield;
    }
  }

  /** The same with all that is known of how it came about; undefined where no patch is for this kind. */
  patched(plan: PatchPlan, view: ProxyView, set: ResourceSet): PatchedSet | undefined {
    const scene = this.#sceneOf(plan, view);
    if (scene === undefined) return undefined;
    let patched = scene.sets.get(set);
    if (patched === undefined) {
      patched = patchSet(scene, set, this.#rules);
      scene.sets.set(set, patched);
    }
    return patched;
  }

  /** Ids of the patches that a resource was made with: those that add it, and those applied to it (or meant for its name, where only that is known). */
  behind(plan: PatchPlan, view: ProxyView, resource: Encoded | { readonly name: string }): readonly string[] {
    const scene = this.#sceneOf(plan, view);
    if (scene === undefined) return [];
    const name = this.#rules.patchName?.(resource.name) ?? resource.name;
    const adding = scene.patches.filter((patch) => patch.operation === "ADD" && scene.adds(patch) && nameOf(patch) === name);
    const applied =
      "body" in resource
        ? [...leafOf(scene, resource).outcome.applied]
        : scene.concerning({ ...UNKNOWN, ...resource }).patches.map(({ id }) => id);
    return [...adding.map(({ id }) => id), ...applied];
  }

  #sceneOf(plan: PatchPlan, view: ProxyView): LiveScene | undefined {
    const scene = plan.patches.length === 0 ? undefined : this.#rules.scene(plan, view);
    if (scene === undefined || scene.patches.length === 0) return undefined;
    const scenes = this.#scenes.get(plan) ?? new Map<string, LiveScene>();
    this.#scenes.set(plan, scenes);
    const live = scenes.get(scene.id) ?? { ...scene, tell: this.#tell, lists: new Map(), maps: new WeakMap(), sets: new WeakMap() };
    scenes.set(scene.id, live);
    return live;
  }
}

const UNKNOWN = { typeUrl: "", version: "", body: new Uint8Array() };

function patchSet(scene: LiveScene, set: ResourceSet, rules: KindRules): PatchedSet {
  const resources = patchMap(scene, set.resources);
  const added = addResources(scene, rules, resources);
  for (const { patch, resource, fault } of added) if (fault !== undefined) scene.tell({ patch, resource: resource.name, reason: fault });
  const taken = new Map(added.flatMap(({ resource, fault }) => (fault === undefined ? [[resource.name, resource] as const] : [])));
  const all = taken.size === 0 ? resources : stacked([resources, taken]);
  return {
    set: all === set.resources ? set : { resources: all, failed: set.failed },
    added,
    *leaves() {
      for (const [name, resource] of set.resources) yield { name, ...leafOf(scene, resource) };
    },
  };
}

/** Parts of a map are patched once for all who share them. */
function patchMap(scene: LiveScene, resources: ResourceSet["resources"]): ResourceSet["resources"] {
  const known = scene.maps.get(resources);
  if (known !== undefined) return known;
  const patched = resources instanceof StackedResources ? patchParts(scene, resources) : patchMembers(scene, resources);
  scene.maps.set(resources, patched);
  return patched;
}

function patchParts(scene: LiveScene, stack: StackedResources): ResourceSet["resources"] {
  const patched = stack.parts.map((part) => patchMap(scene, part));
  return patched.every((part, index) => part === stack.parts[index]) ? stack : stacked(patched);
}

function patchMembers(scene: LiveScene, resources: ResourceSet["resources"]): ResourceSet["resources"] {
  const patched = new Map<string, Encoded>();
  let changed = false;
  for (const [name, resource] of resources) {
    const next = leafOf(scene, resource).resource;
    changed ||= next !== resource;
    if (next !== undefined) patched.set(name, next);
  }
  return changed ? patched : resources;
}

function leafOf(scene: LiveScene, resource: Encoded): PatchedLeaf {
  const steps = leafSteps(scene, resource);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

function* leafSteps(scene: LiveScene, resource: Encoded): Generator<void, PatchedLeaf> {
  const { context, patches } = scene.concerning(resource);
  if (patches.length === 0) return { resource, outcome: NO_OUTCOME };
  const id = `${scene.id}|${context}|${patches.map((patch) => patch.id).join()}`;
  const list = scene.lists.get(id) ?? lists.of(id, () => ({ patches, context, leaves: new WeakMap() }));
  scene.lists.set(id, list);
  let leaf = list.leaves.get(resource);
  if (leaf === undefined) {
    leaf = yield* makeLeaf(scene, resource, list);
    for (const { patch, reason } of leaf.outcome.faults) scene.tell({ patch, resource: resource.name, reason });
    list.leaves.set(resource, leaf);
  }
  return leaf;
}

function* makeLeaf(scene: Scene, resource: Encoded, { patches, context }: PatchList): Generator<void, PatchedLeaf> {
  const applying = scene.apply(resource, patches, context);
  const { body, outcome } = "next" in applying ? yield* applying : applying;
  if (body === undefined) return { resource: undefined, outcome };
  if (body === resource.body) return { resource, outcome };
  const patched = encodedBytes(resource.typeUrl, resource.name, body);
  unpatched.set(patched, resource);
  return { resource: patched, outcome };
}

const unpatched = new WeakMap<Encoded, Encoded>();

/** What a resource was before it was patched; undefined for one that never was. */
export const unpatchedOf = (resource: Encoded): Encoded | undefined => unpatched.get(resource);
