import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { durationOfMs } from "../../base/duration.ts";
import type { MatchPredicateSchema } from "../../gen/envoy/config/common/matcher/v3/matcher_pb.js";
import type {
  HttpProtocolOptionsSchema as CommonHttpOptionsSchema,
  Http2ProtocolOptionsSchema,
} from "../../gen/envoy/config/core/v3/protocol_pb.js";
import {
  type HttpProtocolOptions,
  HttpProtocolOptionsSchema,
} from "../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js";
import { anyOf } from "../../wire/encode.ts";
import { PRESERVE_CASE } from "../filters/header-case.ts";
import type { HttpProtocolInput } from "./cluster-input.ts";

const EXTENSION = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/** The extension options of a cluster that say how HTTP is spoken to it. */
export function httpProtocolOptions(input: HttpProtocolInput): Record<string, Any> {
  const pool = [input.idleTimeoutMs, input.maxConnectionDurationMs, input.maxRequestsPerConnection, input.maxConcurrentStreams];
  const pooled = [...pool, input.http2Keepalive].some((setting) => setting !== undefined);
  const options = anyOf(HttpProtocolOptionsSchema, {
    upstreamProtocolOptions: versionOptions(input),
    ...(pooled && { commonHttpProtocolOptions: commonOptions(input) }),
    ...((input.autoSni || input.autoSanValidation) && {
      upstreamHttpProtocolOptions: { autoSni: input.autoSni, autoSanValidation: input.autoSanValidation },
    }),
    ...(input.outlierCodes !== undefined && { outlierDetection: { errorMatcher: statusMatcher(input.outlierCodes) } }),
  });
  return { [EXTENSION]: options };
}

function versionOptions(input: HttpProtocolInput): MessageInitShape<typeof HttpProtocolOptionsSchema>["upstreamProtocolOptions"] & object {
  const http1 = input.preserveHeaderCase === true ? { headerKeyFormat: PRESERVE_CASE } : {};
  switch (input.version) {
    case "http2":
      return { case: "explicitHttpConfig", value: { protocolConfig: { case: "http2ProtocolOptions", value: http2Options(input) } } };
    case "http1":
      return { case: "explicitHttpConfig", value: { protocolConfig: { case: "httpProtocolOptions", value: http1 } } };
    case "downstream":
      return { case: "useDownstreamProtocolConfig", value: { httpProtocolOptions: http1, http2ProtocolOptions: {} } };
  }
}

/** Any of the codes; a list of one is no list to Envoy. */
function statusMatcher(codes: readonly number[]): MessageInitShape<typeof MatchPredicateSchema> {
  const rules = codes.map(
    (code): MessageInitShape<typeof MatchPredicateSchema> => ({
      rule: {
        case: "httpResponseHeadersMatch",
        value: {
          headers: [
            {
              name: ":status",
              headerMatchSpecifier: { case: "stringMatch", value: { matchPattern: { case: "exact", value: String(code) } } },
            },
          ],
        },
      },
    }),
  );
  return rules.length === 1 && rules[0] !== undefined ? rules[0] : { rule: { case: "orMatch", value: { rules } } };
}

function http2Options({ maxConcurrentStreams, http2Keepalive }: HttpProtocolInput): MessageInitShape<typeof Http2ProtocolOptionsSchema> {
  return {
    ...(maxConcurrentStreams !== undefined && { maxConcurrentStreams }),
    ...(http2Keepalive !== undefined && {
      connectionKeepalive: {
        interval: http2Keepalive.intervalMs === undefined ? undefined : durationOfMs(http2Keepalive.intervalMs),
        timeout: durationOfMs(http2Keepalive.timeoutMs ?? DEFAULT_KEEPALIVE_TIMEOUT_MS),
      },
    }),
  };
}

/** Envoy demands a timeout with a keepalive; this is long enough for a busy peer and short enough to notice a dead one. */
const DEFAULT_KEEPALIVE_TIMEOUT_MS = 20_000;

function commonOptions(input: HttpProtocolInput): MessageInitShape<typeof CommonHttpOptionsSchema> {
  const { idleTimeoutMs, maxConnectionDurationMs, maxRequestsPerConnection } = input;
  return {
    ...(idleTimeoutMs !== undefined && { idleTimeout: durationOfMs(idleTimeoutMs) }),
    ...(maxConnectionDurationMs !== undefined && { maxConnectionDuration: durationOfMs(maxConnectionDurationMs) }),
    ...(maxRequestsPerConnection !== undefined && { maxRequestsPerConnection }),
  };
}

export type { HttpProtocolOptions };
