import { msOfDuration } from "../../../base/duration.ts";
import type { RetryInput } from "../../../envoy/route/route-input.ts";
import type { HTTPRetry } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";

/** What is safe to try again without knowing the application (Istio's default). */
const DEFAULT_RETRY_ON = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes";
const DEFAULT_ATTEMPTS = 2;

/** The retry policy of a route: the rule's own, else the mesh's default, else Istio's. Zero attempts switch it off. */
export function translateRetry(
  own: HTTPRetry | undefined,
  meshDefault: HTTPRetry | undefined,
  options: { readonly hashed: boolean },
): RetryInput | undefined {
  const policy = own ?? meshDefault;
  if (policy === undefined) {
    return {
      attempts: DEFAULT_ATTEMPTS,
      ...DEFAULT_CONDITIONS,
      perTryTimeoutMs: undefined,
      otherLocalities: false,
      avoidPreviousHosts: !options.hashed,
      backOffMs: undefined,
    };
  }
  if (policy.attempts <= 0) return undefined;
  return {
    attempts: policy.attempts,
    ...conditionsOf(policy),
    perTryTimeoutMs: policy.perTryTimeout === undefined ? undefined : msOfDuration(policy.perTryTimeout),
    otherLocalities: policy.retryRemoteLocalities === true,
    avoidPreviousHosts: policy.retryIgnorePreviousHosts ?? !options.hashed,
    // Envoy wants to wait a little; none at all can stand in MeshConfig only.
    backOffMs: policy.backoff === undefined || msOfDuration(policy.backoff) <= 0 ? undefined : msOfDuration(policy.backoff),
  };
}

const known = new WeakMap<HTTPRetry, Conditions>();

/** Worked out once for a policy: that of the mesh stands in nearly all routes. */
function conditionsOf(policy: HTTPRetry): Conditions {
  const found = known.get(policy) ?? (policy.retryOn === "" ? DEFAULT_CONDITIONS : conditions(policy.retryOn));
  known.set(policy, found);
  return found;
}

type Conditions = Pick<RetryInput, "retryOn" | "statusCodes">;

/** Status codes may stand among the conditions; Envoy wants them in a list of their own. */
function conditions(retryOn: string): Conditions {
  const tokens = retryOn
    .split(",")
    .map((token) => token.trim())
    .filter((token) => token !== "");
  const statusCodes = tokens.filter((token) => /^\d{3}$/.test(token)).map(Number);
  const names = tokens.filter((token) => !/^\d+$/.test(token));
  if (statusCodes.length > 0 && !names.includes("retriable-status-codes")) names.push("retriable-status-codes");
  return { retryOn: names.join(","), statusCodes };
}

const DEFAULT_CONDITIONS = conditions(DEFAULT_RETRY_ON);
