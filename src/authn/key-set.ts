import { constants, createPublicKey, type JsonWebKey, type KeyObject, verify } from "node:crypto";
import { keyFault } from "../pki/keys.ts";
import { type SignedToken, TOKEN_ALGORITHMS } from "./json-web-token.ts";

/** A key that may have signed a token. */
export interface VerificationKey {
  readonly key: KeyObject;
  readonly id: string | undefined;
  /** Where the issuer says so, it signs with this algorithm only. */
  readonly algorithm: string | undefined;
}

const MOST_KEYS = 100;

/** Reads a JWK set (RFC 7517); a sentence says what is wrong otherwise. Keys that cannot verify tokens for us are left out: the set may be for others too. */
export function readKeySet(text: string): readonly VerificationKey[] | string {
  const list = listOf(text);
  if (list === undefined) return "it is not a JSON Web Key Set";
  if (list.length > MOST_KEYS) return `it holds more than ${MOST_KEYS} keys`;
  const keys = list.flatMap((jwk) => readKey(jwk) ?? []);
  return keys.length === 0 ? "it holds no public key that can verify tokens" : keys;
}

function listOf(text: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const keys = typeof value === "object" && value !== null && "keys" in value ? value.keys : undefined;
    return Array.isArray(keys) ? keys : undefined;
  } catch {
    return undefined;
  }
}

function readKey(value: unknown): VerificationKey | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { kty, use, kid, alg } = value as Readonly<Record<string, unknown>>;
  if (kty === "oct" || (use !== undefined && use !== "sig")) return undefined;
  try {
    const key = createPublicKey({ key: value as JsonWebKey, format: "jwk" });
    if (keyFault(key) !== undefined) return undefined;
    return { key, id: typeof kid === "string" ? kid : undefined, algorithm: typeof alg === "string" ? alg : undefined };
  } catch {
    return undefined;
  }
}

/** Keys of the set that may have signed this token: those it names, else those without a name; always of the right kind. */
export function candidates(keys: readonly VerificationKey[], token: SignedToken): readonly VerificationKey[] {
  return keys.filter((key) => (token.keyId === undefined || key.id === undefined || key.id === token.keyId) && fits(key, token));
}

function fits({ key, algorithm }: VerificationKey, token: SignedToken): boolean {
  const { keyType, curve } = TOKEN_ALGORITHMS[token.algorithm];
  if (algorithm !== undefined && algorithm !== token.algorithm) return false;
  return key.asymmetricKeyType === keyType && (curve === undefined || key.asymmetricKeyDetails?.namedCurve === curve);
}

/** Whether one of the keys signed the token. */
export const isSigned = (token: SignedToken, keys: readonly VerificationKey[]): boolean =>
  keys.some(({ key }) => isRemembered(token, key) || remembered(token, key, isSignedWith(token, key)));

/** Tokens whose signature was found good, by key; `RememberedTokens` says which live on. */
const goodSignatures = new WeakMap<KeyObject, WeakSet<SignedToken>>();

const isRemembered = (token: SignedToken, key: KeyObject): boolean => goodSignatures.get(key)?.has(token) === true;

/** Times, audience and issuer are looked at each time; only that the key signed these bytes stays true for ever. */
function remembered(token: SignedToken, key: KeyObject, good: boolean): boolean {
  if (!good) return false;
  const known = goodSignatures.get(key) ?? new WeakSet<SignedToken>();
  goodSignatures.set(key, known);
  known.add(token);
  return true;
}

function isSignedWith({ algorithm, signed, signature }: SignedToken, key: KeyObject): boolean {
  const { keyType, digest, pss } = TOKEN_ALGORITHMS[algorithm];
  const how =
    keyType === "ec"
      ? { key, dsaEncoding: "ieee-p1363" as const }
      : pss
        ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
        : key;
  try {
    return verify(digest, signed, how, signature);
  } catch {
    return false;
  }
}
