import { buildCertificate } from "../pki/build-certificate.ts";
import type { Certificate } from "../pki/certificate.ts";
import { chainTo } from "../pki/chain.ts";
import { writePem } from "../pki/pem.ts";
import type { CaMaterial } from "./ca-material.ts";

/**
 * The name and key of a new root, signed by the one it replaces, in PEM. It goes with all that the new one signs as long as both are trusted: a workload that
 * was away when it should have learned of the new root, and knows the old one only, is led there.
 */
export function makeBridge(old: CaMaterial, next: Certificate, organization: string): string {
  const { certificate, key } = old;
  const der = buildCertificate({
    use: { is: "ca" },
    keyInfo: next.keyInfo,
    organization,
    notBefore: Math.max(next.notBefore, certificate.notBefore),
    notAfter: Math.min(next.notAfter, old.endsAt),
    issuer: { key: key.reveal(), name: certificate.subject, keyInfo: certificate.keyInfo, keyId: certificate.keyId },
  });
  return writePem("CERTIFICATE", der);
}

/** Those of `others` that lead from this root to another that is trusted. */
export function bridgesOf(root: Certificate, others: readonly Certificate[], roots: readonly Certificate[]): readonly Certificate[] {
  const isOf = ({ subject, keyInfo, isSelfSigned }: Certificate): boolean =>
    !isSelfSigned && subject.equals(root.subject) && keyInfo.equals(root.keyInfo);
  const elsewhere = roots.filter(({ raw }) => !raw.equals(root.raw));
  return others.filter((one) => isOf(one) && chainTo(one, [], elsewhere) !== undefined);
}
