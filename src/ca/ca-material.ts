import { createPublicKey, type KeyObject } from "node:crypto";
import type { Secret } from "../base/secret.ts";
import { Secret as Sealed } from "../base/secret.ts";
import { type Certificate, readCertificates } from "../pki/certificate.ts";
import { chainEnd, chainTo } from "../pki/chain.ts";
import { readPrivateKey } from "../pki/keys.ts";

/** All that signing takes: a CA certificate with its key, and the way from it to the roots that workloads trust. */
export interface CaMaterial {
  readonly certificate: Certificate;
  readonly key: Secret<KeyObject>;
  /** What goes with every certificate it signs: itself and those above it, without the root. Empty where it is the root. */
  readonly intermediates: readonly Certificate[];
  /** Every root that is trusted; there are several while one replaces another. */
  readonly roots: readonly Certificate[];
  /** When the first certificate on the way to the root ends: nothing signed may outlive it. */
  readonly endsAt: number;
}

/** The same as text, by Istio's file names. */
export interface CaTexts {
  readonly "ca-cert.pem": string;
  readonly "ca-key.pem": string;
  readonly "cert-chain.pem": string;
  readonly "root-cert.pem": string;
}

/** Under the names of Istio's plug-in certificates. */
export const CA_FILES = ["ca-cert.pem", "ca-key.pem", "cert-chain.pem", "root-cert.pem"] as const satisfies readonly (keyof CaTexts)[];

/**
 * Judges a set as a whole: certificates and key must fit each other, lead to a root and be valid now. A sentence says what is wrong otherwise.
 * As in Istio, `cert-chain.pem` may repeat the CA and the root.
 */
export function readCaMaterial(texts: CaTexts, now: number): CaMaterial | string {
  const read = new Map<string, readonly Certificate[]>();
  for (const name of ["ca-cert.pem", "cert-chain.pem", "root-cert.pem"] as const) {
    const certificates = name === "cert-chain.pem" && texts[name].trim() === "" ? [] : readCertificates(texts[name]);
    if (typeof certificates === "string") return `${name}: ${certificates}`;
    read.set(name, certificates);
  }
  const [certificate, ...below] = read.get("ca-cert.pem") ?? [];
  const roots = read.get("root-cert.pem") ?? [];
  if (certificate === undefined) return "ca-cert.pem: it holds no certificate in PEM";
  const key = readPrivateKey(texts["ca-key.pem"]);
  if (typeof key === "string") return `ca-key.pem: ${key}`;
  const chain = chainTo(certificate, [...below, ...(read.get("cert-chain.pem") ?? [])], roots);
  if (chain === undefined) return "ca-cert.pem is not signed by any root in root-cert.pem, directly or through cert-chain.pem";
  const fault = authorityFault(certificate, key) ?? timeFault([...chain.path, chain.root], now);
  if (fault !== undefined) return fault;
  const isRoot = chain.root.raw.equals(certificate.raw);
  return { certificate, key: new Sealed(key), intermediates: isRoot ? [] : chain.path, roots, endsAt: chainEnd(chain) };
}

function authorityFault(certificate: Certificate, key: KeyObject): string | undefined {
  if (!certificate.isCa) return "ca-cert.pem: it is not the certificate of a CA";
  if (key.asymmetricKeyType === "ed25519") return "ca-key.pem: CA keys must be elliptic-curve or RSA, since Envoy verifies no Ed25519";
  const own = createPublicKey(key).export({ type: "spki", format: "der" });
  return own.equals(certificate.x509.publicKey.export({ type: "spki", format: "der" }))
    ? undefined
    : "ca-key.pem is not the key of the certificate in ca-cert.pem";
}

function timeFault(path: readonly Certificate[], now: number): string | undefined {
  const ended = path.find(({ notAfter }) => notAfter <= now);
  if (ended !== undefined) return `a certificate of the CA ended on ${day(ended.notAfter)}`;
  const early = path.find(({ notBefore }) => notBefore > now);
  return early === undefined ? undefined : `a certificate of the CA is not valid before ${day(early.notBefore)}`;
}

const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
