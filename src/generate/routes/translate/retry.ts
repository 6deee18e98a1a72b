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
      ...conditions(DEFAULT_RETRY_ON),
      perTryTimeoutMs: undefined,
      otherLocalities: false,
      avoidPreviousHosts: !options.hashed,
      backOffMs: undefined,
    };
  }
  if (policy.attempts <= 0) return undefined;
  return {
    attempts: policy.attempts,
    ...conditions(policy.retryOn || DEFAULT_RETRY_ON),
    perTryTimeoutMs: policy.perTryTimeout === undefined ? undefined : msOfDuration(policy.perTryTimeout),
    otherLocalities: policy.retryRemoteLocalities === true,
    avoidPreviousHosts: policy.retryIgnorePreviousHosts ?? !options.hashed,
    backOffMs: policy.backoff === undefined ? undefined : msOfDuration(policy.backoff),
  };
}

/** Status codes may stand among the conditions; Envoy wants them in a list of their own. */
function conditions(retryOn: string): Pick<RetryInput, "retryOn" | "statusCodes"> {
  const tokens = retryOn
    .split(",")
    .map((token) => token.trim())
    .filter((token) => token !== "");
  const statusCodes = tokens.filter((token) => /^\d{3}$/.test(token)).map(Number);
  const names = tokens.filter((token) => !/^\d+$/.test(token));
  if (statusCodes.length > 0 && !names.includes("retriable-status-codes")) names.push("retriable-status-codes");
  return { retryOn: names.join(","), statusCodes };
}
