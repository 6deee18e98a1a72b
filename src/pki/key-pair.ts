import { X509Certificate } from "node:crypto";
import { messageOf } from "../base/errors.ts";
import { keyFault, readPrivateKey } from "./keys.ts";
import { stapleFault } from "./ocsp-staple.ts";
import { readPem } from "./pem.ts";

/** What a server shows of itself. */
export interface KeyPairTexts {
  /** PEM, the certificate first. */
  readonly chain: string;
  /** PEM. */
  readonly key: string;
  /** An OCSP response, DER. */
  readonly staple?: Uint8Array;
}

/** What is wrong with a certificate and its key, and with which part. */
export interface KeyPairFault {
  readonly part: keyof KeyPairTexts;
  readonly message: string;
}

/**
 * Why a certificate and a private key cannot serve TLS; undefined where they can. Asked before a proxy is sent them: Envoy refuses a chain that
 * it cannot read, a key of another certificate, a key that is too weak and a staple that does not belong. Dates are not looked at, as Envoy
 * looks at none.
 */
export function keyPairFault({ chain, key, staple }: KeyPairTexts): KeyPairFault | undefined {
  const certificates = certificatesIn(chain);
  if (typeof certificates === "string") return { part: "chain", message: certificates };
  const [leaf] = certificates;
  const weakness = keyFault(leaf.publicKey);
  if (weakness !== undefined) return { part: "chain", message: weakness };
  const privateKey = readPrivateKey(key);
  if (typeof privateKey === "string") return { part: "key", message: privateKey };
  if (!leaf.checkPrivateKey(privateKey))
    return { part: "key", message: `it is not the key of the certificate${nameOf(leaf)}, which must be the first of its chain` };
  const stale = staple && stapleFault(staple, leaf);
  return stale === undefined ? undefined : { part: "staple", message: stale };
}

/** Why a bundle (PEM) holds no roots to trust; undefined where it does. */
export function rootsFault(bundle: string): string | undefined {
  const certificates = certificatesIn(bundle);
  return typeof certificates === "string" ? certificates : undefined;
}

/** Why a text is no list of revoked certificates in PEM; undefined where it is one. */
export function revocationFault(text: string): string | undefined {
  const blocks = readPem(text);
  return blocks.length > 0 && blocks.every(({ label, bytes }) => label === "X509 CRL" && bytes[0] === SEQUENCE)
    ? undefined
    : "it holds no revocation list in PEM";
}

/** First byte of every list in DER. */
const SEQUENCE = 0x30;
const LABELS: ReadonlySet<string> = new Set(["CERTIFICATE", "X509 CERTIFICATE"]);

/** All certificates of a text. Keys that stand between them are passed over, as Envoy does. */
function certificatesIn(pem: string): readonly [X509Certificate, ...X509Certificate[]] | string {
  const [first, ...rest] = readPem(pem).filter(({ label }) => LABELS.has(label));
  if (first === undefined) return "it holds no certificate in PEM";
  try {
    return [new X509Certificate(first.bytes), ...rest.map(({ bytes }) => new X509Certificate(bytes))];
  } catch (error) {
    return `it holds a certificate that cannot be read (${messageOf(error)})`;
  }
}

const nameOf = ({ subjectAltName, subject }: X509Certificate): string => {
  const name = subjectAltName ?? (subject || undefined);
  return name === undefined ? "" : ` of ${name.replaceAll("\n", ", ").slice(0, 200)}`;
};
