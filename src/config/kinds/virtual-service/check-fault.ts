import { quote } from "../../../base/quote.ts";
import type {
  HTTPFaultInjection,
  HTTPFaultInjection_Abort,
  HTTPFaultInjection_Delay,
} from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { durationFault } from "../../checks/duration.ts";
import { percentFault, shareFault } from "../../checks/percent.ts";
import type { Place } from "../../checks/place.ts";
import { httpStatusFault } from "./http-status.ts";

const GRPC_STATUSES: ReadonlySet<string> = new Set([
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
]);

/** Faults put into traffic on purpose. */
export function checkFault(fault: HTTPFaultInjection, place: Place): void {
  if (fault.abort === undefined && fault.delay === undefined) place.fault("field.required", "give abort, delay or both");
  if (fault.abort !== undefined) checkAbort(fault.abort, place.in("abort"));
  if (fault.delay !== undefined) checkDelay(fault.delay, place.in("delay"));
}

/** Answers given instead of forwarding. */
export function checkAbort(abort: HTTPFaultInjection_Abort, place: Place): void {
  if (abort.percentage !== undefined) place.in("percentage").check("field.range", shareFault(abort.percentage.value));
  switch (abort.errorType.case) {
    case "httpStatus":
      place.in("httpStatus").check("field.range", httpStatusFault(abort.errorType.value));
      break;
    case "grpcStatus":
      if (!GRPC_STATUSES.has(abort.errorType.value))
        place.in("grpcStatus").fault("field.invalid", `${quote(abort.errorType.value)} is not a gRPC status such as NOT_FOUND`);
      break;
    case "http2Error":
      place.in("http2Error").fault("field.invalid", "Envoy cannot abort with HTTP/2 errors");
  }
}

/** Time added before forwarding. */
export function checkDelay(delay: HTTPFaultInjection_Delay, place: Place): void {
  if (delay.percent !== 0) {
    place.in("percent").fault("field.deprecated", "use percentage");
    place.in("percent").check("field.range", percentFault(delay.percent));
  }
  if (delay.percentage !== undefined) place.in("percentage").check("field.range", shareFault(delay.percentage.value));
  const { case: how, value } = delay.httpDelayType;
  if (how !== undefined) place.in(how).check("field.range", durationFault(value));
  if (how === "exponentialDelay") place.in(how).fault("field.invalid", "Envoy knows no exponential delay; use fixedDelay");
}
