import type { AdmissionRequest } from "./admission-review.ts";
import type { InjectionOutcome } from "./inject-review.ts";

/** Told of each attempt to change a webhook configuration. */
export type PatchNote = (what: "injector" | "validator", name: string, failure?: string) => void;

/** What is counted about webhooks. */
export interface WebhookMetrics {
  /** A pod came, or what claims to be one. */
  injectionRequested(): void;
  injected(outcome: InjectionOutcome["outcome"], seconds: number): void;
  /** An object was judged; refused where there is a reason. */
  validated(kind: AdmissionRequest["kind"], reason: string | undefined): void;
  validationHttpError(status: number): void;
  /** A configuration was brought up to date, or could not be, for this reason. */
  patched: PatchNote;
}
