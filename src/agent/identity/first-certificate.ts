import { type Clock, waitAtMost } from "../../base/clock.ts";
import type { WorkloadIdentity } from "./workload-identity.ts";

/** How long a CA may take before the control plane is called without a certificate, as it is while the CA is away. */
const PATIENCE_MS = 2_000;

/**
 * Waits until the workload has a certificate, for a while. A machine's token is good for its first certificate and nothing after that: who called the control
 * plane with the token at the same time would be refused as somebody who used it twice.
 */
export async function firstCertificate(identity: Pick<WorkloadIdentity, "certificate" | "follow">, clock: Clock): Promise<void> {
  if (identity.certificate() !== undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const forget = identity.follow(resolve);
  await waitAtMost(clock, PATIENCE_MS, promise);
  forget();
}
