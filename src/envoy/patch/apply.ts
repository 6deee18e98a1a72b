import { type DescMessage, fromBinary, type Message, type MessageShape, type Registry } from "@bufbuild/protobuf";
import { encode } from "../../wire/encode.ts";
import { type ConstraintFault, constraintFaults, faultText } from "./constraints.ts";
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

/**
 * Applies patches to a resource so that the result is one Envoy takes. If it would not, the patches at fault are found and left out: first
 * one alone (patches may need each other, so the others stay together), else the patches are taken one after the other, each only if the
 * resource is still right with it. What was wrong before any patch is no patch's fault.
 */
export function applyPatches<S extends DescMessage>(application: Application<S>): Applied {
  const all = attempt(application, application.patches);
  if (all.faults.length === 0) return resultOf(all, application);
  const before = new Set(attempt(application, []).faults.map(faultText));
  const wrong = ({ faults }: Attempt): readonly string[] => faults.map(faultText).filter((text) => !before.has(text));
  if (wrong(all).length === 0) return resultOf(all, application);
  const used = application.patches.filter(({ id }) => all.trace.applied.has(id));
  for (const patch of used.toReversed()) {
    const without = attempt(
      application,
      application.patches.filter((one) => one !== patch),
    );
    if (wrong(without).length === 0) return resultOf(without, application, new Map([[patch, wrong(all)]]));
  }
  const kept: Patch[] = [];
  const refused = new Map<Patch, readonly string[]>();
  for (const patch of application.patches) {
    const faults = wrong(attempt(application, [...kept, patch]));
    if (faults.length === 0) kept.push(patch);
    else refused.set(patch, faults);
  }
  return resultOf(attempt(application, kept), application, refused);
}

interface Attempt {
  readonly message: Message | undefined;
  readonly trace: PatchTrace;
  readonly faults: readonly ConstraintFault[];
}

function attempt<S extends DescMessage>({ schema, body, registry, patch }: Application<S>, patches: readonly Patch[]): Attempt {
  const trace = new PatchTrace();
  const message = patch(fromBinary(schema, body), patches, trace);
  return { message, trace, faults: message === undefined ? [] : messageFaults(schema, message, registry) };
}

/** Everything Envoy would refuse a message for, as far as we can tell. */
export const messageFaults = (schema: DescMessage, message: Message, registry: Registry): readonly ConstraintFault[] => [
  ...constraintFaults(schema, message, registry),
  ...structureFaults(schema, message),
];

function resultOf<S extends DescMessage>(
  { message, trace }: Attempt,
  { schema, body }: Application<S>,
  refused: ReadonlyMap<Patch, readonly string[]> = new Map(),
): Applied {
  for (const [patch, reasons] of refused) {
    trace.match(patch);
    trace.refuse(patch, reasons.join("; "));
  }
  if (message === undefined) return { body: undefined, outcome: trace };
  return { body: trace.applied.size === 0 ? body : encode(schema, message as MessageShape<S>), outcome: trace };
}
