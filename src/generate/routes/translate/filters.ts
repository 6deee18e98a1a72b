import { msOfDuration } from "../../../base/duration.ts";
import type { CorsInput, FaultInput, Share } from "../../../envoy/route/route-input.ts";
import {
  type CorsPolicy,
  CorsPolicy_UnmatchedPreflights,
  type HTTPFaultInjection,
  type Percent,
} from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { textOf } from "./match.ts";

export function translateCors(policy: CorsPolicy | undefined): CorsInput | undefined {
  if (policy === undefined) return undefined;
  const exact = policy.allowOrigin.map((value) => ({ kind: "exact" as const, value }));
  const matched = policy.allowOrigins.map(textOf).filter((text) => text !== undefined);
  return {
    origins: matched.length > 0 ? matched : exact,
    methods: policy.allowMethods.join(","),
    headers: policy.allowHeaders.join(","),
    exposeHeaders: policy.exposeHeaders.join(","),
    maxAgeSeconds: policy.maxAge === undefined ? "" : String(Math.trunc(msOfDuration(policy.maxAge) / 1000)),
    credentials: policy.allowCredentials,
    forwardUnmatchedPreflights: policy.unmatchedPreflights !== CorsPolicy_UnmatchedPreflights.IGNORE,
  };
}

const GRPC_STATUS: Readonly<Record<string, number>> = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
};

export function translateFault(fault: HTTPFaultInjection | undefined): FaultInput | undefined {
  if (fault === undefined) return undefined;
  const delay = fault.delay;
  const delayMs = delay?.httpDelayType.case === "fixedDelay" ? msOfDuration(delay.httpDelayType.value) : undefined;
  return {
    delay: delay === undefined || delayMs === undefined ? undefined : { ms: delayMs, share: shareOf(delay.percentage, delay.percent) },
    abort: translateAbort(fault.abort),
  };
}

function translateAbort(abort: HTTPFaultInjection["abort"]): FaultInput["abort"] {
  const type = abort?.errorType;
  if (abort === undefined || type === undefined) return undefined;
  const share = abort.percentage === undefined ? undefined : shareOf(abort.percentage, 0);
  if (type.case === "httpStatus") return { status: { kind: "http", code: type.value }, share };
  if (type.case !== "grpcStatus") return undefined;
  const code = GRPC_STATUS[type.value] ?? Number(type.value);
  return Number.isInteger(code) ? { status: { kind: "grpc", code }, share } : undefined;
}

/** Per cents may have fractions, which parts per million keep; the older integer field counts whole per cents. */
export function shareOf(percentage: Percent | undefined, percent: number): Share {
  return percentage === undefined
    ? { numerator: percent, of: "hundred" }
    : { numerator: Math.round(percentage.value * 10_000), of: "million" };
}
