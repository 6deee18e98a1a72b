import { type Clock, waitAtMost } from "../../base/clock.ts";
import { JOIN_ISSUER } from "../../base/join-issuer.ts";
import { readWorkloadToken } from "../workload-token.ts";
import type { WorkloadIdentity } from "./workload-identity.ts";

/** How long a CA may take before the control plane is called without a certificate, as it is while the CA is away. */
const PATIENCE_MS = 2_000;

export interface FirstCertificate {
  readonly identity: Pick<WorkloadIdentity, "certificate" | "follow">;
  readonly baseDir: string;
  readonly clock: Clock;
}

/**
 * Waits, for a while, until a machine that joins has a certificate. Its token is good for that certificate and nothing after: who called the control plane with
 * the token at the same time would be refused as somebody who uses it twice. Any other token may be shown at once, which starts sooner.
 */
export async function firstCertificate({ identity, baseDir, clock }: FirstCertificate): Promise<void> {
  if (identity.certificate() !== undefined || !isJoinToken((await readWorkloadToken(baseDir))?.reveal() ?? "")) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const forget = identity.follow(resolve);
  if (identity.certificate() === undefined) await waitAtMost(clock, PATIENCE_MS, promise);
  forget();
}

function isJoinToken(token: string): boolean {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return typeof claims === "object" && claims !== null && "iss" in claims && claims.iss === JOIN_ISSUER;
  } catch {
    return false;
  }
}
