import { quote } from "../../base/quote.ts";
import type { HTTPRetry } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { durationFault } from "./duration.ts";
import type { Place } from "./place.ts";

/** Conditions that Envoy's router and its gRPC retries know. */
const CONDITIONS: ReadonlySet<string> = new Set([
  "5xx",
  "gateway-error",
  "reset",
  "reset-before-request",
  "connect-failure",
  "retriable-4xx",
  "refused-stream",
  "retriable-status-codes",
  "retriable-headers",
  "envoy-ratelimited",
  "http3-post-connect-failure",
  "cancelled",
  "deadline-exceeded",
  "internal",
  "resource-exhausted",
  "unavailable",
]);

/** First and last of each run of registered HTTP status codes. */
const STATUS_RUNS: readonly (readonly [number, number])[] = [
  [100, 103],
  [200, 208],
  [226, 226],
  [300, 308],
  [400, 418],
  [421, 426],
  [428, 429],
  [431, 431],
  [451, 451],
  [500, 508],
  [510, 511],
];

/** When and how often a request is tried again, of a route or of the whole mesh. */
export function checkHttpRetry(retry: HTTPRetry, place: Place): void {
  if (retry.attempts < 0) place.in("attempts").fault("field.range", "must not be negative");
  if (retry.attempts === 0 && isConfigured(retry))
    place.in("attempts").fault("field.conflict", "0 attempts disable retries, yet other retry settings are given");
  for (const name of ["perTryTimeout", "backoff"] as const) {
    const value = retry[name];
    if (value !== undefined) place.in(name).check("field.range", durationFault(value));
  }
  if (retry.retryOn === "") return;
  for (const condition of retry.retryOn.split(",")) {
    if (!CONDITIONS.has(condition) && !isStatus(condition))
      place.in("retryOn").fault("field.invalid", `${quote(condition)} is neither a retry condition nor an HTTP status`);
  }
}

/** As Istio sees it: how long to wait and whom to avoid may be said for nothing. */
const isConfigured = (retry: HTTPRetry): boolean =>
  retry.perTryTimeout !== undefined || retry.retryOn !== "" || retry.retryRemoteLocalities !== undefined;

function isStatus(text: string): boolean {
  const status = /^\d{3}$/.test(text) ? Number(text) : 0;
  return STATUS_RUNS.some(([first, last]) => status >= first && status <= last);
}
