import { createPublicKey, type KeyObject } from "node:crypto";
import type { Secret } from "../base/secret.ts";
import { Secret as Sealed } from "../base/secret.ts";
import { type Certificate, readCertificates } from "../pki/certificate.ts";
import { chainEnd, chainTo } from "../pki/chain.ts";
import { revocationFault } from "../pki/key-pair.ts";
import { readPrivateKey } from "../pki/keys.ts";
import { bridgesOf } from "./bridge.ts";

/** All that signing takes: a CA certificate with its key, and the way from it to the roots that workloads trust. */
export interface CaMaterial {
  readonly certificate: Certificate;
  readonly key: Secret<KeyObject>;
  /** What goes with every certificate it signs: itself and those above it, without the root. Where it is the root, what leads from it to one that it replaces. */
  readonly intermediates: readonly Certificate[];
  /** Every root that is trusted; there are several while one replaces another. */
  readonly roots: readonly Certificate[];
  /** When the first certificate on the way to the root ends: nothing signed may outlive it. */
  readonly endsAt: number;
  /** Lists of certificates that the CA and those above it have revoked, in PEM; empty where there are none. */
  readonly revoked: string;
}

/** The same as text, by Istio's file names. */
export interface CaTexts {
  readonly "ca-cert.pem": string;
  readonly "ca-key.pem": string;
  readonly "cert-chain.pem": string;
  readonly "root-cert.pem": string;
  readonly "ca-crl.pem"?: string;
}

/** Under the names of Istio's plug-in certificates. */
export const CA_FILES = ["ca-cert.pem", "ca-key.pem", "cert-chain.pem", "root-cert.pem"] as const satisfies readonly (keyof CaTexts)[];

/** What may be beside them: lists of revoked certificates. */
export const REVOKED_FILE = "ca-crl.pem" satisfies keyof CaTexts;

/**
 * Judges a set as a whole: certificates and key must fit each other, lead to a root and be valid now. A sentence says what is wrong otherwise.
 * As in Istio, `cert-chain.pem` may repeat the CA and the root. For a root it may hold the same one as signed by another that is trusted.
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
  const others = [...below, ...(read.get("cert-chain.pem") ?? [])];
  const isValid = ({ notBefore, notAfter }: Certificate): boolean => notBefore <= now && now < notAfter;
  const chain = chainTo(certificate, others.filter(isValid), roots.filter(isValid)) ?? chainTo(certificate, others, roots);
  if (chain === undefined) return "ca-cert.pem is not signed by any root in root-cert.pem, directly or through cert-chain.pem";
  const fault = authorityFault(certificate, key) ?? timeFault([...chain.path, chain.root], now);
  if (fault !== undefined) return fault;
  const revoked = texts[REVOKED_FILE]?.trim() ?? "";
  const revokedFault = revoked === "" ? undefined : revocationFault(revoked);
  if (revokedFault !== undefined) return `${REVOKED_FILE}: ${revokedFault}`;
  const isRoot = chain.root.raw.equals(certificate.raw);
  const intermediates = isRoot ? bridgesOf(certificate, others, roots) : chain.path;
  return { certificate, key: new Sealed(key), intermediates, roots, endsAt: chainEnd(chain), revoked };
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
