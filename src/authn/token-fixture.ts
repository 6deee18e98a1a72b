import { constants, generateKeyPairSync, type JsonWebKey, type KeyObject, type SignKeyObjectInput, sign } from "node:crypto";
import type { TokenAlgorithm } from "./json-web-token.ts";

/** A key pair that signs tokens, for tests. */
export interface TokenKeys {
  readonly algorithm: TokenAlgorithm;
  readonly jwk: JsonWebKey;
  readonly privateKey: KeyObject;
}

const EC: Omit<SignKeyObjectInput, "key"> = { dsaEncoding: "ieee-p1363" };
const PSS: Omit<SignKeyObjectInput, "key"> = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
const PKCS1: Omit<SignKeyObjectInput, "key"> = { padding: constants.RSA_PKCS1_PADDING };

const rsaKeys = () => generateKeyPairSync("rsa", { modulusLength: 2048 });
const ecKeys = (namedCurve: string) => () => generateKeyPairSync("ec", { namedCurve });

/** How others sign (RFC 7518, 8037). Said here anew, so that a fault in the table of what is verified is not in what it is tested with. */
const SIGNING: Readonly<
  Record<
    TokenAlgorithm,
    {
      readonly make: () => { readonly privateKey: KeyObject; readonly publicKey: KeyObject };
      readonly digest: string | null;
      readonly how: Omit<SignKeyObjectInput, "key">;
    }
  >
> = {
  ES256: { make: ecKeys("P-256"), digest: "sha256", how: EC },
  ES384: { make: ecKeys("P-384"), digest: "sha384", how: EC },
  RS256: { make: rsaKeys, digest: "sha256", how: PKCS1 },
  RS384: { make: rsaKeys, digest: "sha384", how: PKCS1 },
  RS512: { make: rsaKeys, digest: "sha512", how: PKCS1 },
  PS256: { make: rsaKeys, digest: "sha256", how: PSS },
  PS384: { make: rsaKeys, digest: "sha384", how: PSS },
  PS512: { make: rsaKeys, digest: "sha512", how: PSS },
  EdDSA: { make: () => generateKeyPairSync("ed25519"), digest: null, how: {} },
};

/** New keys for an algorithm. */
export function tokenKeys(algorithm: TokenAlgorithm, kid = "k1"): TokenKeys {
  const { privateKey, publicKey } = SIGNING[algorithm].make();
  return { algorithm, privateKey, jwk: { ...publicKey.export({ format: "jwk" }), kid } };
}

/** The document that tells of the public parts. */
export const keySetText = (...keys: readonly TokenKeys[]): string => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A signed token; `header` goes over what the keys say. */
export function makeToken(keys: TokenKeys, claims: object, header: object = {}): string {
  const signed = `${part({ alg: keys.algorithm, kid: keys.jwk.kid, typ: "JWT", ...header })}.${part(claims)}`;
  const { digest, how } = SIGNING[keys.algorithm];
  return `${signed}.${sign(digest, Buffer.from(signed), { key: keys.privateKey, ...how }).toString("base64url")}`;
}
