import { SigningError } from "./authority.ts";

/** Uses of a key, in the words of Kubernetes' API for certificates. */
export type KeyUse = "digital signature" | "key encipherment" | "server auth" | "client auth";

/** What of a control plane serves with, and of a workload both ways. */
export const SERVER_USES: readonly KeyUse[] = ["digital signature", "key encipherment", "server auth"];
/** A workload is a server and a client. */
export const WORKLOAD_USES: readonly KeyUse[] = [...SERVER_USES, "client auth"];

/** A certificate that is asked for. */
export interface SigningOrder {
  /** The request (PEM). It is signed as it stands, so what it asks for has been judged. */
  readonly csr: string;
  /** `example.com/mesh`. */
  readonly signer: string;
  readonly uses: readonly KeyUse[];
  /** How long it is wanted for; 0 leaves it to the signer. */
  readonly ttlMs: number;
  /** A request that is approved and not signed is given up after this long. */
  readonly patienceMs: number;
  /** One that nobody approves, after this long; the same where it is not said. People may have to. */
  readonly approvalMs?: number;
}

/** A cluster's API for certificates (CertificateSigningRequest, ClusterTrustBundle): a signer that is not part of this control plane decides. */
export interface CertificateApi {
  /** Where a certificate with its key may be kept for a start while the API server is away; undefined: nowhere. */
  readonly kept: string | undefined;
  /** The certificate and those above it, in PEM. Rejects with `SigningError`, whose sentence says what to do; `SigningRefusal` where somebody said no. */
  sign(order: SigningOrder): Promise<string>;
  /** The roots that are published for a signer; the same object for the same signer. */
  bundle(signer: string): PublishedBundle;
}

/** Roots of a signer, as the cluster publishes them. */
export interface PublishedBundle {
  /** In PEM; empty where there are none. */
  readonly current: string;
  /** Resolves when that is known, or after a while without it. */
  ready(): Promise<void>;
  /** Calls back whenever it changes. */
  follow(changed: () => void): void;
}

/** Somebody said no, or gave what cannot be used: asking again does not help before something is changed. */
export class SigningRefusal extends SigningError {}
