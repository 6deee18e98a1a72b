import { messageOf } from "../../base/errors.ts";
import { type Patch, PatchRefusal } from "./patch.ts";

/** What patches did to one resource: which found what they look for, which changed something, and which were left out and why. */
export interface PatchOutcome {
  readonly matched: ReadonlySet<string>;
  readonly applied: ReadonlySet<string>;
  readonly faults: readonly PatchFault[];
}

export interface PatchFault {
  /** Id of the patch. */
  readonly patch: string;
  readonly reason: string;
}

export const NO_OUTCOME: PatchOutcome = Object.freeze({ matched: new Set<string>(), applied: new Set<string>(), faults: [] });

/** Collects an outcome while patches are applied. */
export class PatchTrace implements PatchOutcome {
  readonly matched = new Set<string>();
  readonly applied = new Set<string>();
  readonly faults: PatchFault[] = [];

  /** The patch's conditions hold somewhere in the resource. */
  match(patch: Patch): void {
    this.matched.add(patch.id);
  }

  /** Does a change for a patch. A refusal costs that patch only; `change` says whether anything changed. */
  apply(patch: Patch, change: () => boolean): void {
    try {
      if (change()) this.applied.add(patch.id);
    } catch (error) {
      if (!(error instanceof PatchRefusal)) throw error;
      this.refuse(patch, messageOf(error));
    }
  }

  /** Notes once why a patch has no effect. */
  refuse(patch: Patch, reason: string): void {
    this.#note(patch.id, reason);
  }

  /** Adds what patches did to a part of the resource. */
  add({ matched, applied, faults }: PatchOutcome): void {
    for (const id of matched) this.matched.add(id);
    for (const id of applied) this.applied.add(id);
    for (const { patch, reason } of faults) this.#note(patch, reason);
  }

  #note(patch: string, reason: string): void {
    if (!this.faults.some((fault) => fault.patch === patch && fault.reason === reason)) this.faults.push({ patch, reason });
  }
}
