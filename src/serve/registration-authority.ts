import type { Clock } from "../base/clock.ts";
import { type Signer, SigningError } from "../ca/authority.ts";
import type { CertificateApi } from "../ca/certificate-api.ts";
import { externalSigner } from "../ca/external-signer.ts";
import { bundlePem, mergeBundles } from "../pki/chain.ts";
import type { Settings } from "../settings/table.ts";
import type { DelegatedCa } from "./delegated-ca.ts";
import type { SignerRoots } from "./signer-roots.ts";

export interface RegistrationOptions {
  readonly settings: Pick<Settings, "k8sSigner" | "certSignerDomain" | "workloadCertTtlMs" | "maxWorkloadCertTtlMs">;
  readonly api: CertificateApi;
  readonly roots: SignerRoots;
  readonly clock: Clock;
}

/** As in Istio: signers of clusters pass requests on to others, which takes time. */
const PATIENCE_MS = 60_000;

/** Certificates of workloads by signers of the cluster (`EXTERNAL_CA: ISTIOD_RA_KUBERNETES_API`): istiod proves who asks, others sign. */
export async function registrationAuthority({ settings, api, roots, clock }: RegistrationOptions): Promise<DelegatedCa> {
  const { k8sSigner, certSignerDomain, workloadCertTtlMs, maxWorkloadCertTtlMs } = settings;
  const signer: Signer = externalSigner({
    api,
    signer: k8sSigner,
    domain: certSignerDomain,
    defaultTtlMs: workloadCertTtlMs,
    maxTtlMs: maxWorkloadCertTtlMs,
    patienceMs: PATIENCE_MS,
    roots: (name, chain) => roots.of(name, chain),
    clock,
  });
  if (k8sSigner !== "") await roots.ready(k8sSigner);
  let fault: string | undefined;
  const used = new Set(k8sSigner === "" ? [] : [k8sSigner]);
  const isOurs = (name: string): boolean => certSignerDomain !== "" && name.startsWith(`${certSignerDomain}/`);
  /** Workloads of several signers are to believe each other. */
  const allRoots = (): string =>
    mergeBundles([...new Set([...used, ...roots.configured().filter(isOurs)])].map((name) => bundlePem(roots.of(name))));
  const who = k8sSigner === "" ? `signers of ${certSignerDomain}, as workloads ask` : `signer ${k8sSigner}`;
  return {
    async sign(request) {
      try {
        const issued = await signer.sign(request);
        fault = undefined;
        if (request.signerName !== undefined) used.add(`${certSignerDomain}/${request.signerName}`);
        return { ...issued, roots: mergeBundles([issued.roots, allRoots()]) };
      } catch (error) {
        if (error instanceof SigningError) fault = error.message;
        throw error;
      }
    },
    roots: allRoots,
    checks: () => [{ name: "CA", ok: fault === undefined, blocks: false, detail: fault ?? `certificates are signed by ${who}` }],
    stop() {},
  };
}
