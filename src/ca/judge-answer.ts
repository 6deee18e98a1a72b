import { type Certificate, readCertificates, workloadOf } from "../pki/certificate.ts";
import { bundlePem, chainTo } from "../pki/chain.ts";
import { formatSpiffeId } from "../pki/spiffe.ts";
import type { Issued, SignRequest } from "./authority.ts";

/** What another CA answered: the workload's certificate with those above it, and the roots that are trusted. */
export interface ForeignAnswer {
  readonly chain: readonly Certificate[];
  readonly roots: readonly Certificate[];
}

/** Believes an answer only if it is for that identity and key, valid now, and leads to the roots. Throws with a sentence that goes on after the CA's name. */
export function judgeAnswer({ chain, roots }: ForeignAnswer, { identity, keyInfo }: SignRequest, now: number): Issued {
  const [leaf, ...above] = chain;
  if (leaf === undefined) throw new Error("the answer holds no certificate beside the roots");
  const holder = workloadOf(leaf);
  if (typeof holder === "string" || formatSpiffeId(holder) !== formatSpiffeId(identity))
    throw new Error(`the answer is not for ${formatSpiffeId(identity)}`);
  if (!leaf.keyInfo.equals(keyInfo)) throw new Error("the answer is for another key");
  if (leaf.notAfter <= now) throw new Error("the certificate it gave has ended");
  if (chainTo(leaf, above, roots) === undefined) throw new Error("the certificate it gave does not lead to the roots it gave");
  const intermediates = above.filter(({ isSelfSigned }) => !isSelfSigned);
  return { certificate: leaf.pem, intermediates: intermediates.map(({ pem }) => pem), roots: bundlePem(roots), notAfter: leaf.notAfter };
}

/** The certificates of an answer. Throws where it is no such thing. */
export function certificatesOf(pem: string): readonly Certificate[] {
  const read = readCertificates(pem);
  if (typeof read === "string") throw new Error(`the answer cannot be read: ${read}`);
  return read;
}
