import type { ApplyTo, Operation } from "../../envoy/patch/patch.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { Wanted } from "../../xds/provider.ts";
import type { CompiledFilter, CompiledPatch } from "./compile.ts";
import type { PatchedSet } from "./patched-kind.ts";
import type { PatchedProvider } from "./patched-provider.ts";
import type { Patches } from "./patches.ts";

/** What one patch of an EnvoyFilter does at the proxies that were looked at. */
export interface PatchReport {
  /** `EnvoyFilter/namespace/name` */
  readonly object: string;
  /** Place in `spec.configPatches`. */
  readonly patch: number;
  readonly applyTo: ApplyTo;
  readonly operation: Operation;
  readonly context: CompiledPatch["context"];
  readonly priority: number;
  /** Proxies it is for. */
  readonly proxies: number;
  /** Resources in which it found what it looks for, and those it changed, summed over the proxies. */
  readonly matched: number;
  readonly applied: number;
  /** Why it is left out, everywhere or from single resources. */
  readonly problems: readonly PatchProblem[];
  /** What of it has no effect, though the rest has. */
  readonly notes: readonly string[];
}

export interface PatchProblem {
  /** The resource it was left out of; absent where it is left out of all. */
  readonly resource?: string;
  readonly reason: string;
}

/** A proxy, what it wants of each type, and what it refused. */
export interface ReportedProxy {
  readonly view: ProxyView;
  readonly types: readonly ReportedType[];
}

export interface ReportedType {
  readonly typeUrl: string;
  readonly wanted: Wanted;
  readonly rejected?: readonly { readonly name: string; readonly version: string; readonly error: string }[];
}

/** Counts of one patch while they are summed up. */
interface Tally {
  proxies: number;
  matched: number;
  applied: number;
  readonly problems: Map<string, PatchProblem>;
}

/** A report that is worked out in steps: many proxies take longer than others on the loop should wait. */
export type ReportSteps = Generator<void, readonly PatchReport[]>;

/**
 * What every patch does at some proxies. A patch that is for no proxy, matches nothing or is left out can be told from one that works:
 * all of it is known from what the proxies are served anyway.
 */
export function* reportPatches(patches: Patches, providers: readonly PatchedProvider[], proxies: Iterable<ReportedProxy>): ReportSteps {
  if (patches.filters().length === 0) return [];
  const tallies = new Map<string, Tally>();
  const tally = (patch: string): Tally => {
    const one = tallies.get(patch) ?? { proxies: 0, matched: 0, applied: 0, problems: new Map() };
    tallies.set(patch, one);
    return one;
  };
  const outcomes = new Map<PatchedSet, number>();
  for (const { view, types } of proxies) {
    yield;
    if (view.generator !== undefined) continue;
    const plan = patches.plans.of(view);
    for (const { id, context } of plan.patches)
      if (context === "ANY" || (context === "GATEWAY") === (view.type === "router")) tally(id).proxies += 1;
    for (const { patch, reason } of plan.refused) {
      tally(patch).proxies += 1;
      tally(patch).problems.set(reason, { reason });
    }
    for (const { typeUrl, wanted, rejected = [] } of types) {
      const outcome = providers.find(({ provider }) => provider.typeUrl === typeUrl)?.outcome(view, wanted);
      if (outcome === undefined) continue;
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (rejected.length > 0) addRejected(outcome, rejected, tally);
    }
  }
  for (const [outcome, times] of outcomes) {
    addOutcome(outcome, times, tally);
    yield;
  }
  return patches
    .filters()
    .flatMap((filter) =>
      filter.patches.map((patch) => reportOf(filter, patch, tallies.get(`${filter.key}#${patch.index}@${filter.hash}`))),
    );
}

/** Adds what patches did to one set, which that many proxies share. */
function addOutcome({ leaves, added }: PatchedSet, times: number, tally: (patch: string) => Tally): void {
  for (const { name, outcome } of leaves()) {
    for (const patch of outcome.matched) tally(patch).matched += times;
    for (const patch of outcome.applied) tally(patch).applied += times;
    for (const { patch, reason } of outcome.faults) tally(patch).problems.set(`${name}: ${reason}`, { resource: name, reason });
  }
  for (const { patch, resource, fault } of added) {
    tally(patch).matched += times;
    if (fault === undefined) tally(patch).applied += times;
    else tally(patch).problems.set(`${resource.name}: ${fault}`, { resource: resource.name, reason: fault });
  }
}

/** Some things only Envoy can judge, such as what a script in Lua does when it is loaded. What it refuses is served to it without the patches. */
function addRejected(
  { leaves, added }: PatchedSet,
  rejected: NonNullable<ReportedType["rejected"]>,
  tally: (patch: string) => Tally,
): void {
  const errors = new Map(
    rejected.map(({ name, version, error }) => [`${name}@${version}`, { resource: name, reason: `Envoy refused it: ${error}` }]),
  );
  const blame = (patch: string, problem: PatchProblem): void =>
    void tally(patch).problems.set(`${problem.resource}: ${problem.reason}`, problem);
  for (const { resource, outcome } of leaves()) {
    const problem = resource === undefined ? undefined : errors.get(`${resource.name}@${resource.version}`);
    if (problem !== undefined) for (const patch of outcome.applied) blame(patch, problem);
  }
  for (const { patch, resource } of added) {
    const problem = errors.get(`${resource.name}@${resource.version}`);
    if (problem !== undefined) blame(patch, problem);
  }
}

function reportOf({ key, priority }: CompiledFilter, patch: CompiledPatch, tally: Tally | undefined): PatchReport {
  return {
    object: key,
    patch: patch.index,
    applyTo: patch.applyTo,
    operation: patch.operation,
    context: patch.context,
    priority,
    proxies: tally?.proxies ?? 0,
    matched: tally?.matched ?? 0,
    applied: tally?.applied ?? 0,
    problems: [...patch.faults.map((reason) => ({ reason })), ...(tally?.problems.values() ?? [])],
    notes: patch.notes,
  };
}
