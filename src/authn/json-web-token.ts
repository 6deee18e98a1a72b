import { AuthnError } from "./authn-error.ts";

/** A token as it came: nothing in it is believed before its signature is verified. */
export interface SignedToken {
  readonly algorithm: TokenAlgorithm;
  readonly keyId: string | undefined;
  readonly claims: Claims;
  /** What the signature covers. */
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** What a token says, by name. */
export type Claims = Readonly<Record<string, unknown>>;

/** Longest token that is looked at. */
export const LONGEST_TOKEN = 16 * 1024;

/** Algorithms that are accepted (RFC 7518, 8037), with what each demands of the key. None is symmetric: a public key must never serve as a secret. */
export const TOKEN_ALGORITHMS = {
  ES256: { keyType: "ec", curve: "prime256v1", digest: "sha256", pss: false },
  ES384: { keyType: "ec", curve: "secp384r1", digest: "sha384", pss: false },
  RS256: { keyType: "rsa", curve: undefined, digest: "sha256", pss: false },
  RS384: { keyType: "rsa", curve: undefined, digest: "sha384", pss: false },
  RS512: { keyType: "rsa", curve: undefined, digest: "sha512", pss: false },
  PS256: { keyType: "rsa", curve: undefined, digest: "sha256", pss: true },
  PS384: { keyType: "rsa", curve: undefined, digest: "sha384", pss: true },
  PS512: { keyType: "rsa", curve: undefined, digest: "sha512", pss: true },
  EdDSA: { keyType: "ed25519", curve: undefined, digest: undefined, pss: false },
} as const;

/** By its name in a token's header. */
export type TokenAlgorithm = keyof typeof TOKEN_ALGORITHMS;

const PART = /^[A-Za-z0-9_-]+$/;

/** Takes a compact JWS apart (RFC 7515). Throws `AuthnError`; the size is looked at first. */
export function readToken(text: string): SignedToken {
  if (text.length > LONGEST_TOKEN)
    throw new AuthnError("token too large", `a token of more than ${LONGEST_TOKEN} characters is not looked at`);
  const parts = text.split(".", 4);
  const [header = "", payload = "", signature = ""] = parts;
  if (parts.length !== 3 || ![header, payload, signature].every((part) => PART.test(part))) throw malformed();
  const { alg, kid, crit, b64 } = readObject(header);
  if (typeof alg !== "string" || !isAlgorithm(alg)) throw new AuthnError("token algorithm", "the token's algorithm is not accepted");
  if (crit !== undefined || b64 !== undefined || (kid !== undefined && typeof kid !== "string")) throw malformed();
  return {
    algorithm: alg,
    keyId: kid,
    claims: readObject(payload),
    signed: Buffer.from(`${header}.${payload}`, "latin1"),
    signature: Buffer.from(signature, "base64url"),
  };
}

const isAlgorithm = (name: string): name is TokenAlgorithm => Object.hasOwn(TOKEN_ALGORITHMS, name);

function readObject(part: string): Claims {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Claims;
  } catch {
    // Said below.
  }
  throw malformed();
}

const malformed = (): AuthnError => new AuthnError("token malformed", "the token is not a signed JWT");
