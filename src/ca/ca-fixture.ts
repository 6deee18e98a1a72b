import { buildCertificate } from "../pki/build-certificate.ts";
import { type Certificate, readCertificate } from "../pki/certificate.ts";
import { generateKeys, type KeyKind, type KeyPair, privateKeyPem } from "../pki/keys.ts";
import type { CaTexts } from "./ca-material.ts";

/** A CA for tests: its certificate and keys. */
export interface TestCa {
  readonly certificate: Certificate;
  readonly keys: KeyPair;
}

export interface TestCaOptions {
  readonly issuer?: TestCa;
  readonly kind?: KeyKind;
  /** Where it is not to have new ones. */
  readonly keys?: KeyPair;
  readonly notBefore: number;
  readonly notAfter: number;
}

/** Makes a CA, signed by another or by itself. */
export async function makeCa(
  organization: string,
  { issuer, kind = "P-256", notBefore, notAfter, ...given }: TestCaOptions,
): Promise<TestCa> {
  const keys = given.keys ?? (await generateKeys(kind));
  const keyInfo = keys.publicKey.export({ type: "spki", format: "der" });
  const der = buildCertificate({
    use: { is: "ca" },
    keyInfo,
    organization,
    notBefore,
    notAfter,
    issuer:
      issuer === undefined
        ? { key: keys.privateKey, keyInfo }
        : { key: issuer.keys.privateKey, keyInfo: issuer.certificate.keyInfo, name: issuer.certificate.subject },
  });
  const certificate = readCertificate(der);
  if (typeof certificate === "string") throw new Error(certificate);
  return { certificate, keys };
}

/** The four files of a CA below these others, the root last. */
export function caTexts(ca: TestCa, ...above: readonly TestCa[]): CaTexts {
  const chain = [ca, ...above].map(({ certificate }) => certificate.pem).join("");
  return {
    "ca-cert.pem": ca.certificate.pem,
    "ca-key.pem": privateKeyPem(ca.keys.privateKey),
    "cert-chain.pem": chain,
    "root-cert.pem": (above.at(-1) ?? ca).certificate.pem,
  };
}
