import { AuthnError } from "../authn/authn-error.ts";
import type { Claims, SignedToken } from "../authn/json-web-token.ts";
import { candidates, isSigned } from "../authn/key-set.ts";
import type { KeySource } from "../authn/key-source.ts";
import { oidcVerifier } from "../authn/oidc-verifier.ts";
import type { TokenVerifier, Vouched } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { tokenReviews } from "./token-reviews.ts";

/** The pod and the service account that a bound token names. */
export interface TokenBinding {
  readonly namespace: string;
  readonly pod: { readonly name: string; readonly uid: string };
  readonly account: { readonly name: string; readonly uid: string };
}

export interface ClusterTokensOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  /** With which the cluster signs tokens. */
  readonly keys: KeySource;
  /** A bound token must name one of them. */
  readonly audiences: readonly string[];
  /** As the cluster says; undefined while that is not known. */
  readonly issuer: () => string | undefined;
  /** Whether both are there as we watch the cluster: the pod of this uid, running as the account of that uid. */
  readonly isThere: (binding: TokenBinding) => boolean;
}

/** Issuer of tokens that are bound to nothing and never end. */
const LEGACY_ISSUER = "kubernetes/serviceaccount";
/** What the issuer is usually called, until the cluster says. */
const USUAL_ISSUERS = ["https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local"];

/**
 * Believes tokens of service accounts. One that is bound to a pod which we see running as that account is verified with the cluster's keys, so that
 * proxies are known while the API server is away; any other is for the API server to judge, each time anew after ten seconds. One that is bound to nothing is
 * always for the API server. What can be found out here is, before it is asked: a token that one of the cluster's keys should have signed and did not costs nobody but us.
 */
export function clusterTokens(options: ClusterTokensOptions): TokenVerifier {
  const { client, clock, keys, audiences, issuer, isThere } = options;
  const reviews = tokenReviews(client, clock);
  return {
    judges: (named) => named === LEGACY_ISSUER || (issuer() === undefined ? USUAL_ISSUERS.includes(named) : named === issuer()),
    async verify(token, said) {
      const from = said?.address ?? "";
      if (token.claims.iss === LEGACY_ISSUER)
        return reviews({ token, audiences: [], unsignedFrom: (await isSignedBy(keys, token)) ? undefined : from });
      const vouched = await vouchedHere(token, options);
      const binding = bindingOf(token.claims);
      const isOwn = vouched?.namespace === binding?.namespace && vouched?.serviceAccount === binding?.account.name;
      if (vouched !== undefined && binding !== undefined && isOwn && isThere(binding)) return boundBy(binding, vouched);
      const judged = await reviews({ token, audiences, unsignedFrom: vouched === undefined ? from : undefined });
      return binding === undefined ? judged : boundBy(binding, judged);
    },
  };
}

/** Whom the token stands for by the cluster's keys; undefined where the key it names is not known here. Rejects with `AuthnError` what is surely not good. */
async function vouchedHere(token: SignedToken, { keys, audiences, clock }: ClusterTokensOptions): Promise<Vouched | undefined> {
  const identity = { namespace: undefined, serviceAccount: undefined };
  try {
    return await oidcVerifier({ issuer: String(token.claims.iss), keys, audiences, identity, clock }).verify(token);
  } catch (error) {
    if (error instanceof AuthnError && error.reason === "token keys") return undefined;
    throw error;
  }
}

const isSignedBy = async (source: KeySource, token: SignedToken): Promise<boolean> =>
  source.keys(false).then(
    (keys) => isSigned(token, candidates(keys, token)),
    () => false,
  );

/** Whom a token stands for that has been found good, with the pod it is bound to: its claims are then the cluster's own words. */
const boundBy = ({ namespace, account, pod }: TokenBinding, vouched: Vouched): Vouched =>
  vouched.namespace === namespace && vouched.serviceAccount === account.name ? { ...vouched, pod } : vouched;

/** What the private claims of a bound token say. */
export function bindingOf(claims: Claims): TokenBinding | undefined {
  const said = claims["kubernetes.io"] as Readonly<Record<string, unknown>> | undefined;
  if (typeof said !== "object" || said === null) return undefined;
  const [pod, account] = [referenceOf(said.pod), referenceOf(said.serviceaccount)];
  return typeof said.namespace === "string" && pod !== undefined && account !== undefined
    ? { namespace: said.namespace, pod, account }
    : undefined;
}

function referenceOf(value: unknown): { readonly name: string; readonly uid: string } | undefined {
  const { name, uid } = (typeof value === "object" && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  return typeof name === "string" && typeof uid === "string" ? { name, uid } : undefined;
}
