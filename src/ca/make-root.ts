import { Secret } from "../base/secret.ts";
import { buildCertificate } from "../pki/build-certificate.ts";
import { generateKeys, privateKeyPem } from "../pki/keys.ts";
import { writePem } from "../pki/pem.ts";
import type { CaTexts } from "./ca-material.ts";

/** A clock that is behind ours by this much still takes what we sign. */
export const BACKDATE_MS = 2 * 60_000;
/** A root is made once, perhaps before the machine's clock was set right: it must not become one that is not valid yet. */
const ROOT_BACKDATE_MS = 24 * 3_600_000;

export interface RootInput {
  /** Becomes the root's organization, as in Istio. */
  readonly trustDomain: string;
  readonly now: number;
  readonly ttlMs: number;
}

/** Makes a self-signed root with a P-256 key. */
export async function makeRoot({ trustDomain, now, ttlMs }: RootInput): Promise<Secret<CaTexts>> {
  const { privateKey, publicKey } = await generateKeys("P-256");
  const keyInfo = publicKey.export({ type: "spki", format: "der" });
  const certificate = buildCertificate({
    use: { is: "ca" },
    keyInfo,
    organization: trustDomain,
    notBefore: now - ROOT_BACKDATE_MS,
    notAfter: now + ttlMs,
    issuer: { key: privateKey, keyInfo },
  });
  const pem = writePem("CERTIFICATE", certificate);
  return new Secret({ "ca-cert.pem": pem, "ca-key.pem": privateKeyPem(privateKey), "cert-chain.pem": pem, "root-cert.pem": pem });
}
