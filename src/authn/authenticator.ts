import type { Clock } from "../base/clock.ts";
import { type Certificate, readCertificate, workloadOf } from "../pki/certificate.ts";
import { identityFault, type WorkloadIdentity } from "../pki/spiffe.ts";
import { AuthnError } from "./authn-error.ts";
import { readToken, type SignedToken } from "./json-web-token.ts";
import { RememberedTokens } from "./remembered-tokens.ts";
import type { BoundPod, SaidByCaller, SingleUse, TokenVerifier, Vouched } from "./token-verifier.ts";

/** Somebody who has proved who it is. */
export interface Caller {
  readonly identity: WorkloadIdentity;
  readonly by: "certificate" | "token";
  /** It showed a token that is good for one certificate only. */
  readonly once?: SingleUse;
  /** The cluster whose token it showed. */
  readonly cluster?: string;
  /** The pod that token is bound to. */
  readonly pod?: BoundPod;
}

/** What a caller shows. */
export interface Credentials {
  /** Its certificate (DER), verified to lead to a root of the mesh. */
  readonly certificate: Uint8Array | undefined;
  /** Why the certificate it showed was not verified. */
  readonly certificateFault?: string;
  /** Its `authorization` header. */
  readonly authorization: string | undefined;
  /** The cluster it says its token is of (`clusterid`, as agents send it). */
  readonly cluster?: string | undefined;
  /** From where it calls, without a port. */
  readonly address?: string;
}

export interface AuthenticatorOptions {
  readonly clock: Clock;
  /** As configured now. */
  verifiers(): readonly TokenVerifier[];
  /** The mesh's trust domain first, then its aliases. */
  trustDomains(): readonly string[];
}

/** Finds out who calls. */
export interface Authenticator {
  /** Rejects with `AuthnError`. */
  authenticate(credentials: Credentials): Promise<Caller>;
}

const BEARER = /^Bearer +(\S+)$/i;

/**
 * A certificate goes before a token, as in Istio: a machine whose token ran out long ago goes on renewing with its certificate. One that does not
 * stand for a workload (the control plane's own, a CA's) counts for nothing, and a token may still be shown beside it.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const remembered = new RememberedTokens();
  return {
    async authenticate({ certificate, certificateFault, authorization, cluster = "", address = "" }) {
      const byCertificate = certificate === undefined ? undefined : certificateCaller(certificate, options);
      if (byCertificate !== undefined && !(byCertificate instanceof AuthnError)) return byCertificate;
      if (authorization !== undefined) return tokenCaller({ authorization, cluster, address }, options, remembered);
      if (byCertificate !== undefined) throw byCertificate;
      if (certificateFault !== undefined)
        throw new AuthnError("certificate", `the client certificate was not accepted: ${certificateFault}`);
      throw new AuthnError("no credentials", "a client certificate of the mesh or a token is needed");
    },
  };
}

/** Certificates as read, by the bytes that their connection holds: it shows the same one with every call. */
const readOnce = new WeakMap<Uint8Array, Certificate | string>();

function certificateCaller(der: Uint8Array, { clock, trustDomains }: AuthenticatorOptions): Caller | AuthnError {
  const certificate = readOnce.get(der) ?? readCertificate(der);
  readOnce.set(der, certificate);
  if (typeof certificate === "string") return new AuthnError("certificate", certificate);
  const now = clock.now();
  if (certificate.notAfter <= now || certificate.notBefore > now)
    return new AuthnError("certificate", "the client certificate has expired or is not valid yet");
  const identity = workloadOf(certificate);
  if (typeof identity === "string") return new AuthnError("identity", identity);
  if (!trustDomains().includes(identity.trustDomain)) return new AuthnError("identity", "the certificate is of another trust domain");
  return { identity, by: "certificate" };
}

async function tokenCaller(
  { authorization, ...said }: SaidByCaller & { readonly authorization: string },
  { verifiers, trustDomains }: AuthenticatorOptions,
  remembered: RememberedTokens,
): Promise<Caller> {
  const token = remembered.get(authorization) ?? readToken(BEARER.exec(authorization)?.[1] ?? "");
  const { namespace, serviceAccount, ...vouched } = await vouch(token, said, verifiers());
  remembered.add(authorization, token);
  const identity = { trustDomain: trustDomains()[0] ?? "", namespace, serviceAccount };
  const fault = identityFault(identity);
  if (fault !== undefined) throw new AuthnError("identity", fault);
  return { identity, by: "token", ...vouched };
}

/** An issuer may be named more than once, for other audiences or claims: the first who believes the token counts, and the first refusal where nobody does. */
async function vouch(token: SignedToken, said: SaidByCaller, verifiers: readonly TokenVerifier[]): Promise<Vouched> {
  const issuer = token.claims.iss;
  let refusal: AuthnError | undefined;
  const judging = typeof issuer === "string" ? verifiers.filter((one) => one.judges(issuer)) : [];
  for (const verifier of judging) {
    try {
      return await verifier.verify(token, said);
    } catch (error) {
      if (!(error instanceof AuthnError)) throw error;
      refusal ??= error;
    }
  }
  throw refusal ?? new AuthnError("token issuer", "tokens of this issuer are not accepted");
}
