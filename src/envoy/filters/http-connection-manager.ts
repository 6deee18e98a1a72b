import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ApiVersion } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { type Filter, FilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import {
  HttpConnectionManager_CodecType as CodecType,
  HttpConnectionManager_PathWithEscapedSlashesAction as EscapedSlashes,
  HttpConnectionManager_ForwardClientCertDetails as Forward,
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
  HttpConnectionManager_ServerHeaderTransformation as ServerHeader,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { UuidRequestIdConfigSchema } from "../../gen/envoy/extensions/request_id/uuid/v3/uuid_pb.js";
import { anyOf } from "../../wire/encode.ts";
import { cidrRange } from "../listener/cidr-range.ts";
import { buildInboundRoute, type InboundRouteInput } from "../route/inbound.ts";
import { type AccessLogInput, accessLogs } from "./access-log.ts";
import { PRESERVE_CASE } from "./header-case.ts";
import { type HttpConnectionInput, httpConnectionFields } from "./http-connection-limits.ts";
import { type HttpFiltersInput, httpFilters } from "./order.ts";
import { buildTracing, type TracingInput } from "./tracing.ts";

export type ForwardClientCert = keyof typeof Forward;

/** How the certificate of the client is told to the next hop, in header `x-forwarded-client-cert`. */
export interface ClientCertDetails {
  readonly forward: ForwardClientCert;
  /** Parts of this hop's certificate to add; undefined where `forward` adds nothing. */
  readonly add:
    | {
        readonly subject: boolean;
        readonly uri: boolean;
        readonly dns: boolean;
        readonly cert: boolean;
        readonly chain: boolean;
      }
    | undefined;
}

/** What a mesh says of all connection managers alike, and a Telemetry or ProxyConfig may change for some. */
export interface HttpSettings extends Omit<HttpFiltersInput, "grpcWeb"> {
  readonly pathNormalization: "none" | "base" | "mergeSlashes" | "decodeAndMergeSlashes";
  readonly accessLogs: readonly AccessLogInput[];
  readonly tracing: TracingInput | undefined;
  /** Let the request id decide whether a request is traced. */
  readonly requestIdDecidesSampling: boolean;
  readonly generateRequestId: boolean;
  /** Limits on clients and what is made of doubtful requests; absent = Envoy's defaults. */
  readonly connection?: HttpConnectionInput;
  /** Pass headers of HTTP/1 on as the client spelt them. */
  readonly preserveHeaderCase?: boolean;
  /** Tell servers the port the client connected to. */
  readonly forwardPort?: boolean;
}

/** All that may influence one HTTP connection manager. */
export interface HttpManagerInput extends HttpSettings {
  readonly statPrefix: string;
  readonly grpcWeb: boolean;
  /** A name to ask for over RDS, or the one route of an inbound chain. */
  readonly routes: { readonly rds: string } | { readonly inbound: InboundRouteInput };
  /** The client's address is the peer's, as at the edge; else it is what the header `x-forwarded-for` says. */
  readonly useRemoteAddress: boolean;
  /** Proxies in front of this one whose entries in `x-forwarded-for` are believed. */
  readonly trustedHops: number;
  /** Clients in these ranges (CIDR) are of the mesh: what they say in `x-envoy-*` headers is believed. */
  readonly internalRanges?: readonly string[];
  readonly clientCert: ClientCertDetails | undefined;
  /** Value of header `server`, or "leave": what the application said is kept. Undefined: Envoy's own. */
  readonly server: string | "leave" | undefined;
  /** The port is declared to speak HTTP/2. */
  readonly http2: boolean;
  /** Say something of HTTP/1: `{}` changes nothing (Istio sends it for gateways); an absolute URL is what a client of a proxy sends. */
  readonly http1?: { readonly allowAbsoluteUrl?: boolean; readonly acceptHttp10?: boolean };
  /** Connections come over QUIC: nothing but HTTP/3 is spoken. */
  readonly http3?: boolean;
}

/** Routes that do not come in this time are taken as none: an unserved name must not keep a listener, and at start the whole proxy, waiting. */
const ROUTES_TIMEOUT_MS = 5_000;

/** Builds the network filter that speaks HTTP. Fixed choices are Istio's: web sockets pass, streams never time out here, `Expect: 100-continue` is passed on. */
export function httpConnectionManager(input: HttpManagerInput): Filter {
  return create(FilterSchema, {
    name: "envoy.filters.network.http_connection_manager",
    configType: { case: "typedConfig", value: anyOf(HttpConnectionManagerSchema, manager(input)) },
  });
}

function manager(input: HttpManagerInput): HttpConnectionManager {
  return create(HttpConnectionManagerSchema, {
    statPrefix: input.statPrefix,
    routeSpecifier: routeSpecifier(input.routes),
    httpFilters: httpFilters(input),
    accessLog: accessLogs(input.accessLogs),
    useRemoteAddress: input.useRemoteAddress,
    xffNumTrustedHops: input.trustedHops,
    proxy100Continue: true,
    streamIdleTimeout: durationFromMs(0),
    upgradeConfigs: [{ upgradeType: "websocket" }],
    requestIdExtension: requestId(input.requestIdDecidesSampling),
    appendXForwardedPort: input.forwardPort === true,
    ...(!input.generateRequestId && { generateRequestId: false }),
    ...pathOptions(input.pathNormalization),
    ...serverHeader(input.server),
    ...clientCertOptions(input.clientCert),
    ...httpConnectionFields(input.connection, input.http2),
    ...http1Fields(input),
    ...(input.http3 === true && { codecType: CodecType.HTTP3, http3ProtocolOptions: {} }),
    ...(input.tracing !== undefined && { tracing: buildTracing(input.tracing) }),
    ...(input.internalRanges !== undefined && { internalAddressConfig: { cidrRanges: input.internalRanges.map(cidrRange) } }),
  });
}

function http1Fields({ http1, preserveHeaderCase }: HttpManagerInput) {
  if (http1 === undefined && preserveHeaderCase !== true) return {};
  return { httpProtocolOptions: { ...http1, ...(preserveHeaderCase === true && { headerKeyFormat: PRESERVE_CASE }) } };
}

function routeSpecifier(routes: HttpManagerInput["routes"]) {
  if ("inbound" in routes) return { case: "routeConfig", value: buildInboundRoute(routes.inbound) } as const;
  return {
    case: "rds",
    value: {
      routeConfigName: routes.rds,
      configSource: {
        configSourceSpecifier: { case: "ads", value: {} },
        resourceApiVersion: ApiVersion.V3,
        initialFetchTimeout: durationFromMs(ROUTES_TIMEOUT_MS),
      },
    },
  } as const;
}

const requestId = (useRequestIdForTraceSampling: boolean) => ({
  typedConfig: anyOf(UuidRequestIdConfigSchema, create(UuidRequestIdConfigSchema, { useRequestIdForTraceSampling })),
});

function pathOptions(mode: HttpSettings["pathNormalization"]) {
  const merge = mode === "mergeSlashes" || mode === "decodeAndMergeSlashes";
  return {
    normalizePath: mode !== "none",
    mergeSlashes: merge,
    pathWithEscapedSlashesAction: mode === "decodeAndMergeSlashes" ? EscapedSlashes.UNESCAPE_AND_FORWARD : EscapedSlashes.KEEP_UNCHANGED,
  };
}

function serverHeader(server: string | undefined) {
  if (server === undefined) return {};
  return server === "leave" ? { serverHeaderTransformation: ServerHeader.PASS_THROUGH } : { serverName: server };
}

function clientCertOptions(details: ClientCertDetails | undefined) {
  if (details === undefined) return {};
  const { forward, add } = details;
  return { forwardClientCertDetails: Forward[forward], ...(add !== undefined && { setCurrentClientCertDetails: add }) };
}
