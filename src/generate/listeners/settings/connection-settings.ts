import type { Duration } from "@bufbuild/protobuf/wkt";
import { LONGEST_SECONDS, msOfDuration } from "../../../base/duration.ts";
import type { HttpConnectionInput } from "../../../envoy/filters/http-connection-limits.ts";
import {
  type ProxyConfig_ConnectionSettings as ConnectionSettings,
  ProxyConfig_ConnectionSettings_PathWithEscapedSlashesAction as EscapedSlashes,
  ProxyConfig_ConnectionSettings_Profile as Profile,
  ProxyConfig_ConnectionSettings_HeadersWithUnderscoresAction as Underscores,
} from "../../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import type { Side } from "../traits.ts";

/** What ProxyConfig's `connectionSettings` say for one side of a proxy. */
export interface ConnectionChoice {
  readonly http: HttpConnectionInput;
  /** Bytes Envoy holds for one connection of a gateway's listener before it stops reading. */
  readonly bufferLimitBytes: number | undefined;
}

const UNDERSCORES = {
  [Underscores.HEADERS_WITH_UNDERSCORES_UNSPECIFIED]: undefined,
  [Underscores.HEADERS_WITH_UNDERSCORES_ALLOW]: "allow",
  [Underscores.HEADERS_WITH_UNDERSCORES_REJECT_REQUEST]: "reject",
  [Underscores.HEADERS_WITH_UNDERSCORES_DROP_HEADER]: "drop",
} as const satisfies Record<Underscores, HttpConnectionInput["headersWithUnderscores"]>;

const ESCAPED_SLASHES = {
  [EscapedSlashes.PATH_WITH_ESCAPED_SLASHES_UNSPECIFIED]: undefined,
  [EscapedSlashes.KEEP_UNCHANGED]: "keep",
  [EscapedSlashes.REJECT_REQUEST]: "reject",
  [EscapedSlashes.UNESCAPE_AND_REDIRECT]: "unescapeAndRedirect",
  [EscapedSlashes.UNESCAPE_AND_FORWARD]: "unescapeAndForward",
} as const satisfies Record<EscapedSlashes, HttpConnectionInput["escapedSlashes"]>;

/** What Envoy's documentation recommends at the edge ("Configuring Envoy as an edge proxy"); profile EDGE asks for it, and gateways alone get it. */
const EDGE: ConnectionChoice = {
  bufferLimitBytes: 32_768,
  http: {
    idleTimeoutMs: 3_600_000,
    streamIdleTimeoutMs: 300_000,
    requestTimeoutMs: 300_000,
    requestHeadersTimeoutMs: 60_000,
    maxConcurrentStreams: 100,
    initialStreamWindow: 65_536,
    initialConnectionWindow: 1_048_576,
    headersWithUnderscores: "reject",
    mergeSlashes: true,
    escapedSlashes: "unescapeAndRedirect",
  },
};

/** The limits of one side. `idleTimeoutMs` is what the node itself says (metadata IDLE_TIMEOUT). */
export function connectionOf(settings: ConnectionSettings | undefined, side: Side, idleTimeoutMs: number | undefined): ConnectionChoice {
  const idle = idleTimeoutMs === undefined ? {} : { idleTimeoutMs };
  if (settings === undefined) return { http: idle, bufferLimitBytes: undefined };
  const edge = settings.profile === Profile.EDGE && side === "gateway" ? EDGE : undefined;
  const own = present({
    idleTimeoutMs: millis(settings.httpIdleTimeout),
    maxConnectionDurationMs: millis(settings.httpMaxConnectionDuration),
    maxStreamDurationMs: millis(settings.httpMaxStreamDuration),
    streamIdleTimeoutMs: millis(settings.httpStreamIdleTimeout),
    requestTimeoutMs: millis(settings.httpRequestTimeout),
    requestHeadersTimeoutMs: millis(settings.httpRequestHeadersTimeout),
    drainTimeoutMs: millis(settings.httpDrainTimeout),
    maxConcurrentStreams: count(settings.httpMaxConcurrentStreams) || undefined,
    initialStreamWindow: http2Window(settings.http2InitialStreamWindowSize),
    initialConnectionWindow: http2Window(settings.http2InitialConnectionWindowSize),
    headersWithUnderscores: UNDERSCORES[settings.httpHeadersWithUnderscoresAction],
    mergeSlashes: settings.httpMergeSlashes,
    escapedSlashes: ESCAPED_SLASHES[settings.httpPathWithEscapedSlashesAction],
  });
  return {
    http: { ...idle, ...edge?.http, ...own },
    bufferLimitBytes: count(settings.listenerPerConnectionBufferLimitBytes) ?? edge?.bufferLimitBytes,
  };
}

/** What a workload says of itself nobody has judged: Envoy takes no time below zero, and none longer than it can count. */
const millis = (duration: Duration | undefined): number | undefined =>
  duration === undefined ? undefined : count(Math.min(msOfDuration(duration), Number(LONGEST_SECONDS) * 1_000));

/** The least that HTTP/2 has a window for; Envoy refuses what is less. */
const LEAST_WINDOW = 65_535;

function http2Window(value: number | undefined): number | undefined {
  const bytes = count(value);
  return bytes === undefined ? undefined : Math.max(bytes, LEAST_WINDOW);
}

/** Numbers below zero mean nothing here; as unsigned numbers they would be enormous. */
const count = (value: number | undefined): number | undefined => (value === undefined || value < 0 ? undefined : value);

function present(fields: { readonly [K in keyof HttpConnectionInput]-?: HttpConnectionInput[K] | undefined }): HttpConnectionInput {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as HttpConnectionInput;
}
