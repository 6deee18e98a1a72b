import type { WorkloadIdentity } from "../pki/spiffe.ts";
import type { SignedToken } from "./json-web-token.ts";

/** Somebody whose tokens are believed: an OIDC issuer, a Kubernetes cluster, or istiod itself. */
export interface TokenVerifier {
  /** Whether a token that says it is from this issuer is ours to judge. */
  judges(issuer: string): boolean;
  /** Whom the token stands for. Rejects with `AuthnError`; where keys or a server that must be asked are away, too. */
  verify(token: SignedToken, said?: SaidByCaller): Promise<Vouched>;
}

/** What is known of a caller beside its token. It decides whom to ask and how often, never what is believed. */
export interface SaidByCaller {
  /** The cluster it says it is in: several clusters may issue tokens under one name, each with keys of its own. */
  readonly cluster: string;
  /** From where it calls, without a port. */
  readonly address: string;
}

/** Whom a token stands for. */
export interface Vouched extends Omit<WorkloadIdentity, "trustDomain"> {
  /** The token is good for one certificate only. */
  readonly once?: SingleUse;
  /** The cluster that vouches for it. */
  readonly cluster?: string;
  /** The pod that the token is bound to, in the same namespace. */
  readonly pod?: BoundPod;
}

/** A pod as a token names it: the one of this uid, not another of its name. */
export interface BoundPod {
  readonly name: string;
  readonly uid: string;
}

/** Something that can be had once. */
export interface SingleUse {
  /** Takes it; resolves when that cannot be forgotten any more. Rejects with `AuthnError` where somebody was faster. */
  take(): Promise<void>;
  /** Gives it back: what it was taken for came to nothing. */
  giveBack(): Promise<void>;
}
