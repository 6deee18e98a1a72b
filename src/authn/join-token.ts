import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from "node:crypto";
import { JOIN_ISSUER } from "../base/join-issuer.ts";
import { identityFault } from "../pki/spiffe.ts";
import { DEFAULT_AUDIENCE } from "./oidc-verifier.ts";

/** Longest life of a join token: it has to be remembered for as long that it was used. */
export const LONGEST_JOIN_MS = 7 * 24 * 3_600_000;
/** How long a token can be used where nobody says. */
export const DEFAULT_JOIN_MS = 3_600_000;

/** For whom a join token is, and for how long. */
export interface JoinRequest {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly ttlMs: number;
}

/** A token with which a workload gets its first certificate. */
export interface JoinToken {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Why no token can be issued for this; undefined where one can. */
export function joinFault({ namespace, serviceAccount, ttlMs }: JoinRequest): string | undefined {
  const fault = identityFault({ trustDomain: "cluster.local", namespace, serviceAccount });
  if (fault !== undefined) return fault;
  if (!Number.isFinite(ttlMs) || ttlMs < 1_000 || ttlMs > LONGEST_JOIN_MS) return "a join token lasts from one second to seven days";
  return undefined;
}

/** Signs a token for one identity and the audience of the CA. Each has an id of its own, by which its use is remembered. */
export function issueJoinToken(key: KeyObject, { namespace, serviceAccount, ttlMs }: JoinRequest, now: number): JoinToken {
  const issuedAt = Math.floor(now / 1_000);
  const exp = Math.floor((now + ttlMs) / 1_000);
  const claims = {
    iss: JOIN_ISSUER,
    aud: [DEFAULT_AUDIENCE],
    sub: `system:serviceaccount:${namespace}:${serviceAccount}`,
    iat: issuedAt,
    exp,
    jti: randomBytes(16).toString("base64url"),
  };
  const signed = `${part({ alg: "ES256", typ: "JWT", kid: keyIdOf(key) })}.${part(claims)}`;
  const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" });
  return { token: `${signed}.${signature.toString("base64url")}`, expiresAt: exp * 1_000 };
}

/** The public half as a key set, for the verifier. */
export function joinKeySet(key: KeyObject): string {
  const jwk = createPublicKey(key).export({ format: "jwk" });
  return JSON.stringify({ keys: [{ ...jwk, kid: keyIdOf(key), alg: "ES256", use: "sig" }] });
}

/** Names the key by its content, so that a token of a key that was replaced is seen to be of another. */
const keyIdOf = (key: KeyObject): string =>
  createHash("sha256")
    .update(createPublicKey(key).export({ type: "spki", format: "der" }))
    .digest("base64url")
    .slice(0, 16);

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
