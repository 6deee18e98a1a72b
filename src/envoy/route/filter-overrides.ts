import type { Any } from "@bufbuild/protobuf/wkt";
import { durationOfMs } from "../../base/duration.ts";
import { CorsPolicySchema } from "../../gen/envoy/extensions/filters/http/cors/v3/cors_pb.js";
import { HTTPFaultSchema } from "../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.js";
import type { Session } from "../../model/session.ts";
import { anyOf } from "../../wire/encode.ts";
import { SESSION_FILTER, sessionOverride } from "../filters/session.ts";
import { fractionOf } from "./fraction.ts";
import type { CorsInput, FaultInput } from "./route-input.ts";
import { stringMatcher } from "./text-match.ts";

/** Settings of HTTP filters that one route, or virtual host, carries, by the filter's name. */
export function filterOverrides(route: {
  readonly cors: CorsInput | undefined;
  readonly fault: FaultInput | undefined;
  readonly session?: Session;
}): Record<string, Any> {
  return {
    ...(route.cors !== undefined && { "envoy.filters.http.cors": corsOverride(route.cors) }),
    ...(route.fault !== undefined && { "envoy.filters.http.fault": faultOverride(route.fault) }),
    ...(route.session !== undefined && { [SESSION_FILTER]: sessionOverride(route.session) }),
  };
}

function corsOverride(cors: CorsInput): Any {
  return anyOf(CorsPolicySchema, {
    allowOriginStringMatch: cors.origins.map(stringMatcher),
    allowMethods: cors.methods,
    allowHeaders: cors.headers,
    exposeHeaders: cors.exposeHeaders,
    maxAge: cors.maxAgeSeconds,
    ...(cors.credentials !== undefined && { allowCredentials: cors.credentials }),
    filterEnabled: { defaultValue: { numerator: 100 } },
    forwardNotMatchingPreflights: cors.forwardUnmatchedPreflights,
  });
}

function faultOverride({ delay, abort }: FaultInput): Any {
  return anyOf(HTTPFaultSchema, {
    ...(delay !== undefined && {
      delay: { faultDelaySecifier: { case: "fixedDelay" as const, value: durationOfMs(delay.ms) }, percentage: fractionOf(delay.share) },
    }),
    ...(abort !== undefined && {
      abort: {
        errorType:
          abort.status.kind === "http"
            ? { case: "httpStatus" as const, value: abort.status.code }
            : { case: "grpcStatus" as const, value: abort.status.code },
        ...(abort.share !== undefined && { percentage: fractionOf(abort.share) }),
      },
    }),
  });
}
