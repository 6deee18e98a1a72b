import type { Clock } from "../base/clock.ts";
import { buildCertificate, type CertificateUse } from "../pki/build-certificate.ts";
import { bundlePem } from "../pki/chain.ts";
import { writePem } from "../pki/pem.ts";
import { formatSpiffeId, type WorkloadIdentity } from "../pki/spiffe.ts";
import type { CaMaterial } from "./ca-material.ts";
import { BACKDATE_MS } from "./make-root.ts";

/** Something that signs certificates of workloads: our own CA, or another one that it is left to. */
export interface Signer {
  sign(request: SignRequest): Promise<Issued>;
}

export interface SignRequest {
  readonly identity: WorkloadIdentity;
  /** The workload's request (PEM): its names are not to be believed. */
  readonly csr: string;
  /** The workload's key (SubjectPublicKeyInfo), proved to be its own. */
  readonly keyInfo: Uint8Array;
  /** How long it is wanted for; 0 leaves it to the CA. */
  readonly ttlMs: number;
  /** The signer that the workload names, where several are to be had (`CertSigner` of the request's metadata). */
  readonly signerName?: string;
}

/** A certificate and what goes with it. */
export interface Issued {
  readonly certificate: string;
  /** In order, without the root. */
  readonly intermediates: readonly string[];
  /** All roots, as one text. */
  readonly roots: string;
  readonly notAfter: number;
}

/** The CA cannot sign now; the message says why. */
export class SigningError extends Error {
  override readonly name = "SigningError";
}

/** Our own CA: it signs with the set in force, which may be replaced while it runs. */
export interface Authority extends Signer {
  sign(request: Omit<SignRequest, "csr">): Promise<Issued>;
  readonly material: CaMaterial;
  replace(material: CaMaterial): void;
  /** A certificate for the control plane itself. */
  signServer(request: {
    readonly dnsNames: readonly string[];
    readonly addresses: readonly string[];
    readonly keyInfo: Uint8Array;
  }): Issued;
}

export interface AuthorityOptions {
  readonly material: CaMaterial;
  readonly clock: Clock;
  /** Where the caller does not say. */
  readonly defaultTtlMs: number;
  /** Longer wishes are cut to this. */
  readonly maxTtlMs: number;
}

/** A certificate that would end sooner than this is of no use to anybody. */
const LEAST_TTL_MS = 1_000;

/** Signs with `material` until it is replaced. Times are cut to `maxTtlMs` and to the end of the CA itself. */
export function createAuthority(options: AuthorityOptions): Authority {
  const { clock, defaultTtlMs, maxTtlMs } = options;
  let material = options.material;
  let bundle = bundlesOf(material);
  const issue = (use: CertificateUse, keyInfo: Uint8Array, wantedMs: number): Issued => {
    const { certificate, key, endsAt } = material;
    const now = clock.now();
    const ttlMs = Math.min(wantedMs > 0 ? wantedMs : defaultTtlMs, maxTtlMs);
    const notAfter = Math.min(now + ttlMs, endsAt);
    const notBefore = Math.max(now - BACKDATE_MS, certificate.notBefore);
    if (notAfter - now < LEAST_TTL_MS) throw new SigningError(`the CA ended on ${iso(endsAt)}`);
    if (notAfter - notBefore < LEAST_TTL_MS)
      throw new SigningError(`the CA is not valid before ${iso(certificate.notBefore)}, and this machine's clock says ${iso(now)}`);
    const der = buildCertificate({
      use,
      keyInfo,
      notBefore,
      notAfter,
      issuer: { key: key.reveal(), name: certificate.subject, keyInfo: certificate.keyInfo, keyId: certificate.keyId },
    });
    return { certificate: writePem("CERTIFICATE", der), ...bundle, notAfter };
  };
  return {
    get material() {
      return material;
    },
    replace(next) {
      material = next;
      bundle = bundlesOf(next);
    },
    sign: async ({ identity, keyInfo, ttlMs }) => issue({ is: "workload", uri: formatSpiffeId(identity) }, keyInfo, ttlMs),
    signServer: ({ dnsNames, addresses, keyInfo }) => issue({ is: "server", dnsNames, addresses }, keyInfo, 0),
  };
}

const iso = (ms: number): string => new Date(ms).toISOString();

const bundlesOf = ({ intermediates, roots }: CaMaterial): Pick<Issued, "intermediates" | "roots"> => ({
  intermediates: intermediates.map(({ pem }) => pem),
  roots: bundlePem(roots),
});
