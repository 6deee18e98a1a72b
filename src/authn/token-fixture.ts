import { constants, generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from "node:crypto";
import { TOKEN_ALGORITHMS, type TokenAlgorithm } from "./json-web-token.ts";

/** A key pair that signs tokens, for tests. */
export interface TokenKeys {
  readonly algorithm: TokenAlgorithm;
  readonly jwk: JsonWebKey;
  readonly privateKey: KeyObject;
}

export function tokenKeys(algorithm: TokenAlgorithm, kid = "k1"): TokenKeys {
  const { keyType, curve } = TOKEN_ALGORITHMS[algorithm];
  const { privateKey, publicKey } =
    keyType === "ec"
      ? generateKeyPairSync("ec", { namedCurve: curve })
      : keyType === "rsa"
        ? generateKeyPairSync("rsa", { modulusLength: 2048 })
        : generateKeyPairSync("ed25519");
  return { algorithm, privateKey, jwk: { ...publicKey.export({ format: "jwk" }), kid } };
}

export const keySetText = (...keys: readonly TokenKeys[]): string => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A signed token; `header` goes over what the keys say. */
export function makeToken(keys: TokenKeys, claims: object, header: object = {}): string {
  const signed = `${part({ alg: keys.algorithm, kid: keys.jwk.kid, typ: "JWT", ...header })}.${part(claims)}`;
  const { keyType, digest, pss } = TOKEN_ALGORITHMS[keys.algorithm];
  const key = keys.privateKey;
  const how =
    keyType === "ec"
      ? { key, dsaEncoding: "ieee-p1363" as const }
      : { key, ...(pss && { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }) };
  return `${signed}.${sign(digest, Buffer.from(signed), how).toString("base64url")}`;
}
