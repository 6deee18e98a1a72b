import { type DescMessage, fromBinary, type Message, type MessageShape, type Registry } from "@bufbuild/protobuf";
import { encode } from "../../wire/encode.ts";
import { constraintFaults } from "./constraints.ts";
import { type Fault, faultText } from "./fault.ts";
import type { Patch } from "./patch.ts";
import { structureFaults } from "./structure.ts";
import { type PatchOutcome, PatchTrace } from "./trace.ts";

/** How the patches of one kind of resource are applied. */
export interface Application<S extends DescMessage> {
  readonly schema: S;
  readonly body: Uint8Array;
  readonly patches: readonly Patch[];
  readonly registry: Registry;
  /** Applies patches to a fresh copy; undefined when one of them removes the resource. */
  readonly patch: (message: MessageShape<S>, patches: readonly Patch[], trace: PatchTrace) => MessageShape<S> | undefined;
}

/** What became of a resource. */
export interface Applied {
  /** Its bytes: the same as before where nothing changed, undefined where it was removed. */
  readonly body: Uint8Array | undefined;
  readonly outcome: PatchOutcome;
}

/** What some patches make of a resource. */
export interface Attempt {
  readonly trace: PatchTrace;
  /** All that Envoy would refuse the result for. */
  readonly faults: readonly Fault[];
  /** The result; undefined where a patch removed the resource. */
  readonly result: (() => Uint8Array) | undefined;
}

/** Tries some of the patches on the resource as it was, giving way where there is much of it. */
export type Attempting = (patches: readonly Patch[]) => Generator<void, Attempt>;

/** Applies patches to a resource so that the result is one Envoy takes, see `applyInSteps`, in one go. */
export function applyPatches<S extends DescMessage>(application: Application<S>): Applied {
  const steps = applyInSteps(application, (patches) => wholeAttempt(application, patches));
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Applies patches to a resource so that the result is one Envoy takes. If it would not, the patches at fault are found and left out: first
 * one alone (patches may need each other, so the others stay together), else the patches are taken one after the other, each only if the
 * resource is still right with it. What was wrong before any patch is no patch's fault. Gives way between attempts.
 */
export function* applyInSteps(
  { body, patches }: Pick<Application<DescMessage>, "body" | "patches">,
  attempt: Attempting,
): Generator<void, Applied> {
  const all = yield* attempt(patches);
  if (all.faults.length === 0) return resultOf(all, body);
  const before = new Set((yield* attempt([])).faults.map(faultText));
  const wrong = ({ faults }: Attempt): readonly string[] => faults.map(faultText).filter((text) => !before.has(text));
  if (wrong(all).length === 0) return resultOf(all, body);
  for (const patch of patches.filter(({ id }) => all.trace.applied.has(id)).reverse()) {
    yield;
    const without = yield* attempt(patches.filter((one) => one !== patch));
    if (wrong(without).length === 0) return resultOf(without, body, new Map([[patch, wrong(all)]]));
  }
  const kept: Patch[] = [];
  const refused = new Map<Patch, readonly string[]>();
  for (const patch of patches) {
    yield;
    const faults = wrong(yield* attempt([...kept, patch]));
    if (faults.length === 0) kept.push(patch);
    else refused.set(patch, faults);
  }
  return resultOf(yield* attempt(kept), body, refused);
}

/** One attempt on the decoded resource. */
export function* wholeAttempt<S extends DescMessage>(
  { schema, body, registry, patch }: Application<S>,
  patches: readonly Patch[],
): Generator<void, Attempt> {
  const trace = new PatchTrace();
  const message = patch(fromBinary(schema, body), patches, trace);
  if (message === undefined) return { trace, faults: [], result: undefined };
  return { trace, faults: messageFaults(schema, message, registry), result: () => encode(schema, message) };
}

/** Everything Envoy would refuse a message for, as far as we can tell. */
export const messageFaults = (schema: DescMessage, message: Message, registry: Registry): readonly Fault[] => [
  ...constraintFaults(schema, message, registry),
  ...structureFaults(schema, message),
];

function resultOf({ trace, result }: Attempt, body: Uint8Array, refused: ReadonlyMap<Patch, readonly string[]> = new Map()): Applied {
  for (const [patch, reasons] of refused) {
    trace.match(patch);
    trace.refuse(patch, reasonText(reasons));
  }
  if (result === undefined) return { body: undefined, outcome: trace };
  return { body: trace.applied.size === 0 ? body : result(), outcome: trace };
}

/** How many reasons are told: one bad patch of a large table has one for every host. */
const TOLD_REASONS = 3;

function reasonText(reasons: readonly string[]): string {
  const more = reasons.length - TOLD_REASONS;
  return [...reasons.toSorted().slice(0, TOLD_REASONS), ...(more > 0 ? [`and ${more} more of the kind`] : [])].join("; ");
}
