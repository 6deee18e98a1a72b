import { create } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { CorsSchema } from "../../gen/envoy/extensions/filters/http/cors/v3/cors_pb.js";
import { HTTPFaultSchema } from "../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.js";
import { FilterConfigSchema as GrpcStatsSchema } from "../../gen/envoy/extensions/filters/http/grpc_stats/v3/config_pb.js";
import { GrpcWebSchema } from "../../gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.js";
import { RouterSchema } from "../../gen/envoy/extensions/filters/http/router/v3/router_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../wire/encode.ts";
import type { DnsCacheInput } from "../dns-cache.ts";
import { resolvesHost } from "./dynamic-dns.ts";
import { httpExtension, type PhasedExtensions } from "./extension-filter.ts";
import type { PolicyFilters } from "./policy-filters.ts";
import { sessionFilter } from "./session.ts";

/** All that decides which HTTP filters a connection manager gets. */
export interface HttpFiltersInput {
  /** The port is declared to speak gRPC-Web: its requests are turned into gRPC. */
  readonly grpcWeb: boolean;
  /** Keep `x-envoy-*` headers off requests and responses (ProxyConfig proxyHeaders.envoyDebugHeaders.disabled). */
  readonly suppressEnvoyHeaders: boolean;
  /** What the security policies of the workload ask for; absent where there are none, and towards others. */
  readonly policies?: PolicyFilters;
  /** WasmPlugins and TrafficExtensions of this chain; absent where there are none. */
  readonly extensions?: PhasedExtensions;
  /** Routes may keep sessions: requests are led to the endpoint of theirs. */
  readonly sessions?: boolean;
  /** Names that routes to clusters of resolution DYNAMIC_DNS are resolved with; absent where there are none. */
  readonly dnsCaches?: readonly DnsCacheInput[];
}

type FilterMaker = (input: HttpFiltersInput) => readonly HttpFilter[];

/**
 * The HTTP filters of every connection manager, in the order requests pass them. The order is Istio's; what Istio adds that upstream Envoy
 * does not have is left out. Filters of policies belong where the comments say.
 */
const HTTP_FILTER_ORDER: readonly FilterMaker[] = [
  // External authorizers (CUSTOM) are asked before anything else looks at the request: what they add, such as a token, is there for the rest.
  ({ policies }) => policies?.custom ?? [],
  // Extensions of phase AUTHN: they may see requests that nobody has authenticated.
  ({ extensions }) => extensions?.authn.map(httpExtension) ?? [],
  // Request authentication (JWT) comes before authorization, which reads the claims it found; extensions of phase AUTHZ stand between them.
  ({ policies }) => policies?.authentication ?? [],
  ({ extensions }) => extensions?.authz.map(httpExtension) ?? [],
  // DENY and ALLOW rules: whatever follows sees allowed requests only.
  ({ policies }) => policies?.authorization ?? [],
  // Extensions of phase STATS, then those of no phase: they see the request as the client sent it, before faults are injected.
  ({ extensions }) => extensions?.rest.map(httpExtension) ?? [],
  // gRPC-Web becomes gRPC before anything counts or routes it.
  ({ grpcWeb }) => (grpcWeb ? [filter("envoy.filters.http.grpc_web", anyOf(GrpcWebSchema, create(GrpcWebSchema)))] : []),
  // Counts gRPC messages of what was let in, also of requests that the next filters answer themselves.
  () => [filter("envoy.filters.http.grpc_stats", GRPC_STATS)],
  // Injected delays and aborts are configured per route; before CORS, as in Istio, so that a fault hits preflights too.
  () => [filter("envoy.filters.http.fault", anyOf(HTTPFaultSchema, create(HTTPFaultSchema)))],
  // Answers preflights by the policy of the route.
  () => [filter("envoy.filters.http.cors", anyOf(CorsSchema, create(CorsSchema)))],
  // Sessions choose the host after everything that may answer by itself.
  ({ sessions }) => (sessions === true ? [sessionFilter()] : []),
  // Names are resolved when nothing but the router is left to ask for the address.
  ({ dnsCaches }) => dnsCaches?.map(resolvesHost) ?? [],
  // The router ends the chain: Envoy demands it.
  ({ suppressEnvoyHeaders }) => [filter("envoy.filters.http.router", anyOf(RouterSchema, create(RouterSchema, { suppressEnvoyHeaders })))],
];

/** The HTTP filters of one connection manager, in order. */
export const httpFilters = (input: HttpFiltersInput): HttpFilter[] => HTTP_FILTER_ORDER.flatMap((make) => make(input));

const GRPC_STATS = anyOf(
  GrpcStatsSchema,
  create(GrpcStatsSchema, { emitFilterState: true, perMethodStatSpecifier: { case: "statsForAllMethods", value: { value: false } } }),
);

const filter = (name: string, typedConfig: Any): HttpFilter =>
  create(HttpFilterSchema, { name, configType: { case: "typedConfig", value: typedConfig } });
