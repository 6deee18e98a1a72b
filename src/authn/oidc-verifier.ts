import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { AuthnError } from "./authn-error.ts";
import { claimAt } from "./claims.ts";
import type { Claims, SignedToken } from "./json-web-token.ts";
import { candidates, isSigned } from "./key-set.ts";
import type { KeySource } from "./key-source.ts";
import type { TokenVerifier } from "./token-verifier.ts";

export interface OidcVerifierOptions {
  readonly issuer: string;
  readonly keys: KeySource;
  /** A token must name one of them; none means `istio-ca`. */
  readonly audiences: readonly string[];
  /** Claims that say who the workload is; without them `sub` must be `system:serviceaccount:<namespace>:<service account>`, as Kubernetes has it. */
  readonly identity: { readonly namespace: string | undefined; readonly serviceAccount: string | undefined };
  readonly clock: Clock;
}

/** The audience that Istio's workloads ask their tokens for. */
export const DEFAULT_AUDIENCE = "istio-ca";
/** Clocks differ: a token may be from the near future, but it ends when it says. */
const SKEW_S = 60;

/** Believes the tokens of one issuer. */
export function oidcVerifier(options: OidcVerifierOptions): TokenVerifier {
  const audiences = options.audiences.length === 0 ? [DEFAULT_AUDIENCE] : options.audiences;
  return {
    judges: (issuer) => issuer === options.issuer,
    async verify(token) {
      checkTimes(token.claims, options.clock.now() / 1_000);
      checkAudience(token.claims, audiences);
      await checkSignature(token, options.keys);
      return identityOf(token.claims, options.identity);
    },
  };
}

/** What costs nothing is looked at first; nothing of it is believed before the signature is. */
function checkTimes({ exp, nbf, iat }: Claims, now: number): void {
  if (typeof exp !== "number" || exp <= now || exp === Infinity)
    throw new AuthnError("token expired", "the token has expired, or does not say when it does");
  for (const start of [nbf, iat]) {
    if (start === undefined || (typeof start === "number" && start <= now + SKEW_S)) continue;
    throw new AuthnError("token expired", "the token is not valid yet");
  }
}

function checkAudience({ aud }: Claims, audiences: readonly string[]): void {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!named.some((one) => typeof one === "string" && audiences.includes(one)))
    throw new AuthnError("token audience", "the token is for another audience");
}

async function checkSignature(token: SignedToken, source: KeySource): Promise<void> {
  for (const fresh of [false, true]) {
    const keys = candidates(await keysOf(source, fresh), token);
    if (isSigned(token, keys)) return;
    if (keys.length > 0) throw new AuthnError("token signature", "the token is not signed by its issuer");
  }
  throw new AuthnError("token keys", "the token names a key that its issuer is not known to have");
}

async function keysOf(source: KeySource, fresh: boolean): ReturnType<KeySource["keys"]> {
  try {
    return await source.keys(fresh);
  } catch (error) {
    throw new AuthnError("token keys", `the keys of the token's issuer are not known: ${messageOf(error)}`);
  }
}

function identityOf(claims: Claims, paths: OidcVerifierOptions["identity"]): Awaited<ReturnType<TokenVerifier["verify"]>> {
  const [, fromSubject, account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(String(claims.sub)) ?? [];
  const namespace = paths.namespace === undefined ? fromSubject : claimAt(claims, paths.namespace);
  const serviceAccount = paths.serviceAccount === undefined ? account : claimAt(claims, paths.serviceAccount);
  if (typeof namespace !== "string" || typeof serviceAccount !== "string")
    throw new AuthnError("identity", "the token does not say for which namespace and service account it is");
  return { namespace, serviceAccount };
}
