import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import { HttpProtocolOptions_HeadersWithUnderscoresAction as Underscores } from "../../gen/envoy/config/core/v3/protocol_pb.js";
import { HttpConnectionManager_PathWithEscapedSlashesAction as EscapedSlashes } from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";

/** Limits on the clients of a connection manager (ProxyConfig connectionSettings). What is absent is left to Envoy. */
export interface HttpConnectionInput {
  readonly idleTimeoutMs?: number;
  readonly maxConnectionDurationMs?: number;
  readonly maxStreamDurationMs?: number;
  readonly streamIdleTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  readonly requestHeadersTimeoutMs?: number;
  readonly drainTimeoutMs?: number;
  readonly maxConcurrentStreams?: number;
  readonly initialStreamWindow?: number;
  readonly initialConnectionWindow?: number;
  readonly headersWithUnderscores?: "allow" | "reject" | "drop";
  readonly mergeSlashes?: boolean;
  readonly escapedSlashes?: "keep" | "reject" | "unescapeAndRedirect" | "unescapeAndForward";
}

const UNDERSCORES = {
  allow: Underscores.ALLOW,
  reject: Underscores.REJECT_REQUEST,
  drop: Underscores.DROP_HEADER,
} as const satisfies Record<NonNullable<HttpConnectionInput["headersWithUnderscores"]>, Underscores>;

const ESCAPED_SLASHES = {
  keep: EscapedSlashes.KEEP_UNCHANGED,
  reject: EscapedSlashes.REJECT_REQUEST,
  unescapeAndRedirect: EscapedSlashes.UNESCAPE_AND_REDIRECT,
  unescapeAndForward: EscapedSlashes.UNESCAPE_AND_FORWARD,
} as const satisfies Record<NonNullable<HttpConnectionInput["escapedSlashes"]>, EscapedSlashes>;

/** The fields of a connection manager that limit its clients. They stand after those of the mesh, which they go before. */
export function httpConnectionFields(input: HttpConnectionInput = {}, declaredHttp2: boolean) {
  const common = commonOptions(input);
  const http2 = http2Options(input);
  return {
    ...(Object.keys(common).length > 0 && { commonHttpProtocolOptions: common }),
    ...((declaredHttp2 || Object.keys(http2).length > 0) && { http2ProtocolOptions: http2 }),
    ...timeouts(input),
    ...(input.mergeSlashes !== undefined && { mergeSlashes: input.mergeSlashes }),
    ...(input.escapedSlashes !== undefined && { pathWithEscapedSlashesAction: ESCAPED_SLASHES[input.escapedSlashes] }),
  };
}

function commonOptions(input: HttpConnectionInput) {
  return {
    ...(input.idleTimeoutMs !== undefined && { idleTimeout: durationFromMs(input.idleTimeoutMs) }),
    ...(input.maxConnectionDurationMs !== undefined && { maxConnectionDuration: durationFromMs(input.maxConnectionDurationMs) }),
    ...(input.maxStreamDurationMs !== undefined && { maxStreamDuration: durationFromMs(input.maxStreamDurationMs) }),
    ...(input.headersWithUnderscores !== undefined && { headersWithUnderscoresAction: UNDERSCORES[input.headersWithUnderscores] }),
  };
}

function http2Options({ maxConcurrentStreams, initialStreamWindow, initialConnectionWindow }: HttpConnectionInput) {
  return {
    ...(maxConcurrentStreams !== undefined && { maxConcurrentStreams }),
    ...(initialStreamWindow !== undefined && { initialStreamWindowSize: initialStreamWindow }),
    ...(initialConnectionWindow !== undefined && { initialConnectionWindowSize: initialConnectionWindow }),
  };
}

function timeouts(input: HttpConnectionInput): Record<string, Duration> {
  return {
    ...(input.streamIdleTimeoutMs !== undefined && { streamIdleTimeout: durationFromMs(input.streamIdleTimeoutMs) }),
    ...(input.requestTimeoutMs !== undefined && { requestTimeout: durationFromMs(input.requestTimeoutMs) }),
    ...(input.requestHeadersTimeoutMs !== undefined && { requestHeadersTimeout: durationFromMs(input.requestHeadersTimeoutMs) }),
    ...(input.drainTimeoutMs !== undefined && { drainTimeout: durationFromMs(input.drainTimeoutMs) }),
  };
}
