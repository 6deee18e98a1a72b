import type { WorkloadIdentity } from "../pki/spiffe.ts";
import type { SignedToken } from "./json-web-token.ts";

/** Somebody whose tokens are believed: an OIDC issuer, a Kubernetes cluster, or istiod itself. */
export interface TokenVerifier {
  /** Whether a token that says it is from this issuer is ours to judge. */
  judges(issuer: string): boolean;
  /** Whom the token stands for. Rejects with `AuthnError`; where keys or a server that must be asked are away, too. */
  verify(token: SignedToken): Promise<Omit<WorkloadIdentity, "trustDomain">>;
}
