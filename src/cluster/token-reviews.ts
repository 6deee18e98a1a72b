import { createHash } from "node:crypto";
import { AuthnError } from "../authn/authn-error.ts";
import type { SignedToken } from "../authn/json-web-token.ts";
import type { Vouched } from "../authn/token-verifier.ts";
import { createAllowance } from "../base/allowance.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { KubeClient } from "../kube/kube-client.ts";

/** What the API server is asked. */
export interface ReviewQuestion {
  readonly token: SignedToken;
  /** It must be for one of them; none: it is for no audience. */
  readonly audiences: readonly string[];
  /** From where a token came of which it is not known that the cluster signed it; undefined where that is known. */
  readonly unsignedFrom: string | undefined;
}

/** Has a token judged by the API server. Rejects with `AuthnError`. */
export type Review = (question: ReviewQuestion) => Promise<Vouched>;

const GOOD_FOR_MS = 10_000;
const BAD_FOR_MS = 10_000;
const MOST_REMEMBERED = 10_000;
/** Whoever can reach a port can show a token that nobody signed: that must not become a load on the API server. A gateway may speak for a whole cluster. */
const EACH = { burst: 100, perSecond: 5 };
const ALL = { burst: 500, perSecond: 50 };

/**
 * Asks the API server (TokenReview), once for many who ask at a time, and remembers its word for a while: no to keep strangers from making us ask, yes to spare it.
 * About tokens that may be anybody's it is asked so often for an address, and no oftener.
 */
export function tokenReviews(client: Pick<KubeClient, "request">, clock: Clock): Review {
  const known = new Map<string, { readonly answer: Promise<Vouched>; until: number }>();
  const allowance = createAllowance({ clock, each: EACH, all: ALL });
  return ({ token, audiences, unsignedFrom }) => {
    const text = `${token.signed.toString("latin1")}.${token.signature.toString("base64url")}`;
    const id = createHash("sha256").update(text).digest("base64url");
    const before = known.get(id);
    if (before !== undefined && before.until > clock.monotonic()) return before.answer;
    if (unsignedFrom !== undefined && !allowance.take(unsignedFrom)) return Promise.reject(tooMany());
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

const tooMany = (): AuthnError =>
  new AuthnError("too many tokens", "too many tokens came from this address that only the API server can judge; try again later");

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
