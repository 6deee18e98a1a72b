import { createPrivateKey, generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { messageOf } from "../base/errors.ts";
import { OID } from "./oids.ts";

/** Kinds of keys we make. */
export type KeyKind = "P-256" | "P-384" | `RSA-${number}`;

export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const generate = promisify(generateKeyPair);

/** A fresh key pair, made off the main thread. */
export const generateKeys = (kind: KeyKind): Promise<KeyPair> =>
  kind === "P-256" || kind === "P-384"
    ? generate("ec", { namedCurve: kind })
    : generate("rsa", { modulusLength: Number(kind.slice("RSA-".length)) });

const CURVES: Readonly<Record<string, string>> = { prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521" };
/** Sizes of RSA keys that are neither too weak nor too costly. */
export const RSA_BITS = { least: 2048, most: 8192 } as const;
const LARGEST_EXPONENT = 2n ** 32n;

/** Why a public key is not accepted: too weak, or so large that using it would cost us. Undefined where it is. Ask before any use of a stranger's key. */
export function keyFault(key: KeyObject): string | undefined {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = "" } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case "ec":
      return CURVES[namedCurve] === undefined ? "elliptic-curve keys must be of P-256, P-384 or P-521" : undefined;
    case "rsa":
      if (modulusLength < RSA_BITS.least) return `RSA keys must have at least ${RSA_BITS.least} bits`;
      if (modulusLength > RSA_BITS.most) return `RSA keys must have at most ${RSA_BITS.most} bits`;
      return publicExponent < 3n || publicExponent > LARGEST_EXPONENT ? "the RSA exponent is out of range" : undefined;
    case "ed25519":
      return undefined;
    default:
      return "keys must be elliptic-curve, RSA or Ed25519";
  }
}

/** How a certificate or request is signed. */
export interface SignatureAlgorithm {
  readonly oid: string;
  /** Undefined where the key's kind decides. */
  readonly digest: "sha256" | "sha384" | "sha512" | undefined;
  readonly keyType: "ec" | "rsa" | "ed25519";
}

/** Every signature algorithm that is accepted; the first for a kind of key is the one we sign with. */
export const SIGNATURE_ALGORITHMS: readonly SignatureAlgorithm[] = [
  { oid: OID.ecdsaSha256, digest: "sha256", keyType: "ec" },
  { oid: OID.ecdsaSha384, digest: "sha384", keyType: "ec" },
  { oid: OID.ecdsaSha512, digest: "sha512", keyType: "ec" },
  { oid: OID.rsaSha256, digest: "sha256", keyType: "rsa" },
  { oid: OID.rsaSha384, digest: "sha384", keyType: "rsa" },
  { oid: OID.rsaSha512, digest: "sha512", keyType: "rsa" },
  { oid: OID.ed25519, digest: undefined, keyType: "ed25519" },
];

const DIGEST_OF_CURVE: Readonly<Record<string, string>> = { prime256v1: "sha256", secp384r1: "sha384", secp521r1: "sha512" };

/** The algorithm to sign with under this key; its strength follows the curve's. */
export function algorithmFor(key: KeyObject): SignatureAlgorithm {
  const digest = DIGEST_OF_CURVE[key.asymmetricKeyDetails?.namedCurve ?? ""];
  const found = SIGNATURE_ALGORITHMS.find(
    ({ keyType, digest: own }) => keyType === key.asymmetricKeyType && (digest === undefined || own === digest),
  );
  if (found === undefined) throw new Error(`keys of type ${key.asymmetricKeyType ?? "unknown"} cannot sign certificates`);
  return found;
}

/** Reads an unencrypted private key (PKCS#8, SEC1 or PKCS#1 PEM); a sentence says what is wrong otherwise. */
export function readPrivateKey(pem: string): KeyObject | string {
  try {
    const key = createPrivateKey(pem);
    return keyFault(key) ?? key;
  } catch (error) {
    return `it holds no private key that can be read (${messageOf(error)})`;
  }
}

/** A private key as PKCS#8 PEM. */
export const privateKeyPem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();
