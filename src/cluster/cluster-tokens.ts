import { createHash } from "node:crypto";
import { AuthnError } from "../authn/authn-error.ts";
import type { Claims, SignedToken } from "../authn/json-web-token.ts";
import type { KeySource } from "../authn/key-source.ts";
import { oidcVerifier } from "../authn/oidc-verifier.ts";
import type { TokenVerifier, Vouched } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { KubeClient } from "../kube/kube-client.ts";

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
const GOOD_FOR_MS = 10_000;
const BAD_FOR_MS = 10_000;
const MOST_REMEMBERED = 10_000;

/**
 * Believes tokens of service accounts. One that is bound to a pod which we see running as that account is verified with the cluster's keys, so that
 * proxies are known while the API server is away; any other is for the API server to judge, each time anew after ten seconds. One that is bound to nothing is
 * always for the API server.
 */
export function clusterTokens({ client, clock, keys, audiences, issuer, isThere }: ClusterTokensOptions): TokenVerifier {
  const reviews = rememberedReviews(client, clock);
  return {
    judges: (named) => named === LEGACY_ISSUER || (issuer() === undefined ? USUAL_ISSUERS.includes(named) : named === issuer()),
    async verify(token) {
      if (token.claims.iss === LEGACY_ISSUER) return reviews(token, []);
      if (!namesAudience(token.claims, audiences)) throw new AuthnError("token audience", "the token is for another audience");
      const binding = bindingOf(token.claims);
      if (binding === undefined) return reviews(token, audiences);
      if (!isThere(binding)) return boundBy(binding, await reviews(token, audiences));
      const local = oidcVerifier({ issuer: String(token.claims.iss), keys, audiences, identity: NO_PATHS, clock });
      try {
        const vouched = await local.verify(token);
        if (vouched.namespace === binding.namespace && vouched.serviceAccount === binding.account.name) return boundBy(binding, vouched);
      } catch (error) {
        if (!(error instanceof AuthnError && error.reason === "token keys")) throw error;
      }
      return boundBy(binding, await reviews(token, audiences));
    },
  };
}

/** Whom a token stands for that has been found good, with the pod it is bound to: its claims are then the cluster's own words. */
const boundBy = ({ namespace, account, pod }: TokenBinding, vouched: Vouched): Vouched =>
  vouched.namespace === namespace && vouched.serviceAccount === account.name ? { ...vouched, pod } : vouched;

const NO_PATHS = { namespace: undefined, serviceAccount: undefined };

function namesAudience({ aud }: Claims, audiences: readonly string[]): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  return named.some((one) => typeof one === "string" && audiences.includes(one));
}

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

type Review = (token: SignedToken, audiences: readonly string[]) => Promise<Vouched>;

/** Asks the API server, once for many who ask at a time, and remembers its word for a while: no to keep strangers from making us ask, yes to spare it. */
function rememberedReviews(client: Pick<KubeClient, "request">, clock: Clock): Review {
  const known = new Map<string, { readonly answer: Promise<Vouched>; until: number }>();
  return (token, audiences) => {
    const text = `${token.signed.toString("latin1")}.${token.signature.toString("base64url")}`;
    const id = createHash("sha256").update(text).digest("base64url");
    const before = known.get(id);
    if (before !== undefined && before.until > clock.monotonic()) return before.answer;
    known.delete(id);
    const entry = { answer: review(client, text, audiences), until: Number.POSITIVE_INFINITY };
    known.set(id, entry);
    entry.answer.then(
      () => (entry.until = clock.monotonic() + GOOD_FOR_MS),
      (error) => {
        if (error instanceof AuthnError && error.reason !== "token keys") entry.until = clock.monotonic() + BAD_FOR_MS;
        else known.delete(id);
      },
    );
    const [oldest] = known.keys();
    if (known.size > MOST_REMEMBERED && oldest !== undefined) known.delete(oldest);
    return entry.answer;
  };
}

async function review(client: Pick<KubeClient, "request">, token: string, audiences: readonly string[]): Promise<Vouched> {
  const body = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    spec: { token, ...(audiences.length > 0 && { audiences }) },
  };
  let answer: unknown;
  try {
    answer = await client.request({
      method: "POST",
      path: "/apis/authentication.k8s.io/v1/tokenreviews",
      body,
      repeatable: true,
      timeoutMs: 5_000,
    });
  } catch (error) {
    throw new AuthnError("token keys", `the API server cannot be asked about the token: ${messageOf(error)}`);
  }
  const { status } = answer as { readonly status?: ReviewStatus };
  if (status?.authenticated !== true) throw new AuthnError("token signature", "the API server does not accept the token");
  if (audiences.length > 0 && !(status.audiences ?? []).some((one) => audiences.includes(one)))
    throw new AuthnError("token audience", "the token is for another audience");
  const [, namespace, serviceAccount] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(status.user?.username ?? "") ?? [];
  if (namespace === undefined || serviceAccount === undefined)
    throw new AuthnError("identity", "the token is not that of a service account");
  return { namespace, serviceAccount };
}

interface ReviewStatus {
  readonly authenticated?: boolean;
  readonly audiences?: readonly string[];
  readonly user?: { readonly username?: string };
}
