import type { PatchNote } from "./webhook-metrics.ts";

/** Webhooks that are served here, as the API server is to know them. */
export interface ServedWebhooks {
  readonly port: number;
  readonly injects: boolean;
  readonly validates: boolean;
  /** Pods of namespaces that say nothing are injected, too. */
  readonly injectsByDefault: boolean;
  /** Roots in PEM that their certificate is verified with. */
  caBundle(): string;
  readonly patched: PatchNote;
}
