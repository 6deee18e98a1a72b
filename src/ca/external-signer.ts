import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Certificate } from "../pki/certificate.ts";
import { CsrError } from "../pki/csr.ts";
import { readCsrClaims } from "../pki/csr-claims.ts";
import { formatSpiffeId, type WorkloadIdentity } from "../pki/spiffe.ts";
import { type Issued, type Signer, SigningError } from "./authority.ts";
import { type CertificateApi, WORKLOAD_USES } from "./certificate-api.ts";
import { certificatesOf, judgeAnswer } from "./judge-answer.ts";

export interface ExternalSignerOptions {
  readonly api: Pick<CertificateApi, "sign">;
  /** For workloads that name no signer; empty where each has to. */
  readonly signer: string;
  /** What goes before the names that workloads give; empty where they may give none. */
  readonly domain: string;
  readonly defaultTtlMs: number;
  /** Longer wishes are cut to this. */
  readonly maxTtlMs: number;
  readonly patienceMs: number;
  /** The roots of a signer; where nothing is known of it, the root that a chain of its ends with. */
  roots(signer: string, chain: readonly Certificate[]): readonly Certificate[];
  readonly clock: Clock;
}

/**
 * Leaves signing to a signer of the cluster (Istio's `ISTIOD_RA_KUBERNETES_API`). Signers sign what a request says, so it is judged first: it may ask for the name
 * that the caller has proved, and for nothing else. What comes back is judged like any other CA's answer.
 */
export function externalSigner(options: ExternalSignerOptions): Signer {
  const { api, clock, defaultTtlMs, maxTtlMs, patienceMs } = options;
  return {
    async sign(request): Promise<Issued> {
      const signer = signerOf(options, request.signerName);
      const csr = judgedRequest(request.csr, request.identity);
      const ttlMs = Math.min(request.ttlMs > 0 ? request.ttlMs : defaultTtlMs, maxTtlMs);
      const answer = await api.sign({ csr, signer, uses: WORKLOAD_USES, ttlMs, patienceMs });
      try {
        const chain = certificatesOf(answer);
        return judgeAnswer({ chain, roots: options.roots(signer, chain) }, request, clock.now());
      } catch (error) {
        throw new SigningError(`signer ${signer} gave no certificate: ${messageOf(error)}`);
      }
    },
  };
}

function signerOf({ signer, domain }: ExternalSignerOptions, name: string | undefined): string {
  if (name !== undefined && domain === "")
    throw new SigningError(`signer ${JSON.stringify(name.slice(0, 100))} cannot be used: CERT_SIGNER_DOMAIN is not set`);
  if (name !== undefined && !/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name))
    throw new CsrError("CertSigner is not the name of a signer");
  if (name !== undefined) return `${domain}/${name}`;
  if (signer === "") throw new SigningError("there is no signer for workloads that name none: K8S_SIGNER is not set");
  return signer;
}

function judgedRequest(csr: string, identity: WorkloadIdentity): string {
  const { pem, hasSubject, names, hasMore } = readCsrClaims(csr);
  const [name, ...more] = names;
  if (name?.type !== "uri" || name.value !== formatSpiffeId(identity) || more.length > 0)
    throw new CsrError(`the request must ask for exactly one name, ${formatSpiffeId(identity)}`);
  if (hasSubject || hasMore) throw new CsrError("the request asks for more than a name");
  return pem;
}
