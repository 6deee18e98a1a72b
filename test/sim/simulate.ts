import { anyUnpack } from "@bufbuild/protobuf/wkt";
import type { FilterChain } from "../../src/gen/envoy/config/listener/v3/listener_components_pb.js";
import { type Route, VirtualHost_TlsRequirementType } from "../../src/gen/envoy/config/route/v3/route_components_pb.js";
import type { RouteConfiguration } from "../../src/gen/envoy/config/route/v3/route_pb.js";
import {
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
} from "../../src/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { type TcpProxy, TcpProxySchema } from "../../src/gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.js";
import { DownstreamTlsContextSchema } from "../../src/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import { chooseChain, chooseListener } from "./choose-listener.ts";
import { matchRoute, matchVirtualHost } from "./match-request.ts";
import type { SimConfig } from "./sim-config.ts";
import { type Target, targetsOf } from "./targets.ts";

/** A connection, and the request on it where it speaks HTTP. */
export interface Call {
  /** Of the workload's own traffic, of traffic to the workload, or straight to a listener that is bound (a gateway, an explicit port). */
  readonly direction: "outbound" | "inbound" | "bound";
  readonly address: string;
  readonly port: number;
  readonly tls?: { readonly sni?: string; readonly alpn?: readonly string[] };
  /** Undefined: bytes that are not HTTP. */
  readonly http?: HttpCall;
  /** Decides between weighted destinations: 0 is the first, just below 1 the last. */
  readonly dice?: number;
}

export interface HttpCall {
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly version?: "http/1.0" | "http/1.1" | "h2c";
}

interface Passed {
  readonly listener: string;
  readonly filterChain: string;
  /** What a client must bring to get in. */
  readonly serverTls: "plaintext" | "tls" | "mutual";
  readonly virtualHost?: string;
  readonly route?: string;
}

/** Where a call ends: at endpoints, at an answer of the proxy's own, or nowhere, and then what was missing. */
export type Outcome =
  | (Passed & { readonly kind: "forwarded"; readonly cluster: string; readonly endpoints: readonly Target[] })
  | (Passed & { readonly kind: "answered"; readonly status: number; readonly location?: string })
  | {
      readonly kind: "missed";
      readonly what: "listener" | "filter chain" | "table" | "virtual host" | "route" | "cluster" | "endpoint";
      readonly name: string;
    };

/** Walks a call through a proxy's configuration by Envoy's rules. Filters that refuse requests (authorization, rate limits) are not walked. */
export function simulate(config: SimConfig, call: Call): Outcome {
  const listener = chooseListener(config.listeners, call);
  if (listener === undefined) return missed("listener", `${call.address}:${call.port}`);
  const chain = chooseChain(listener, call);
  if (chain === undefined) return missed("filter chain", listener.name);
  const passed: Passed = { listener: listener.name, filterChain: chain.name, serverTls: serverTls(chain) };
  for (const { configType } of chain.filters) {
    if (configType.case !== "typedConfig") continue;
    const manager = anyUnpack(configType.value, HttpConnectionManagerSchema);
    if (manager !== undefined) return throughHttp({ config, call, passed }, manager);
    const proxy = anyUnpack(configType.value, TcpProxySchema);
    if (proxy !== undefined) return forward({ config, call, passed }, pick(proxy.clusterSpecifier, call));
  }
  return missed("filter chain", `${listener.name} forwards nothing`);
}

interface Walk {
  readonly config: SimConfig;
  readonly call: Call;
  readonly passed: Passed;
}

const missed = (what: Extract<Outcome, { kind: "missed" }>["what"], name: string): Outcome => ({ kind: "missed", what, name });

function throughHttp(walk: Walk, manager: HttpConnectionManager): Outcome {
  const { http } = walk.call;
  if (http === undefined) return { ...walk.passed, kind: "answered", status: 400 };
  const { name, table } = tableOf(walk.config, manager);
  if (table === undefined) return missed("table", name);
  const host = matchVirtualHost(table, http.host);
  if (host === undefined) return missed("virtual host", `${http.host} in ${name}`);
  const path = http.path ?? "/";
  if (host.requireTls === VirtualHost_TlsRequirementType.ALL && walk.call.tls === undefined)
    return { ...walk.passed, kind: "answered", status: 301, location: `https://${http.host}${path}`, virtualHost: host.name };
  const route = matchRoute(host, { ...http, path, scheme: walk.call.tls === undefined ? "http" : "https" });
  if (route === undefined) return missed("route", `${http.host}${path} in ${name}`);
  return act({ ...walk, passed: { ...walk.passed, virtualHost: host.name, route: route.name } }, route);
}

function tableOf(
  config: SimConfig,
  { routeSpecifier }: HttpConnectionManager,
): { readonly name: string; readonly table: RouteConfiguration | undefined } {
  if (routeSpecifier.case === "routeConfig") return { name: routeSpecifier.value.name, table: routeSpecifier.value };
  const name = routeSpecifier.case === "rds" ? routeSpecifier.value.routeConfigName : "";
  return { name, table: config.tables.get(name) };
}

const REDIRECT_STATUS = [301, 302, 303, 307, 308];

function act(walk: Walk, { action }: Route): Outcome {
  if (action.case === "directResponse") return { ...walk.passed, kind: "answered", status: action.value.status };
  if (action.case === "route") return forward(walk, pick(action.value.clusterSpecifier, walk.call));
  if (action.case !== "redirect") return missed("route", "no action");
  const { hostRedirect, pathRewriteSpecifier, responseCode, schemeRewriteSpecifier } = action.value;
  const scheme =
    schemeRewriteSpecifier.case === "schemeRedirect" ? schemeRewriteSpecifier.value : walk.call.tls === undefined ? "http" : "https";
  const path = (pathRewriteSpecifier.case === "pathRedirect" && pathRewriteSpecifier.value) || walk.call.http?.path || "/";
  return {
    ...walk.passed,
    kind: "answered",
    status: REDIRECT_STATUS[responseCode] ?? 301,
    location: `${scheme}://${hostRedirect || walk.call.http?.host}${path}`,
  };
}

type ClusterChoice = TcpProxy["clusterSpecifier"] | Extract<Route["action"], { case: "route" }>["value"]["clusterSpecifier"];

/** The name of the cluster that the call's dice falls on. */
function pick(choice: ClusterChoice, { dice = 0 }: Call): string {
  if (choice.case === "cluster") return choice.value;
  if (choice.case !== "weightedClusters") return "";
  const shares = choice.value.clusters.map(({ name, weight }) => ({ name, weight: weight ?? 0 }));
  let left = dice * shares.reduce((sum, { weight }) => sum + weight, 0);
  for (const { name, weight } of shares) {
    if (left < weight) return name;
    left -= weight;
  }
  return "";
}

function forward({ config, call, passed }: Walk, name: string): Outcome {
  const cluster = config.clusters.get(name);
  if (cluster === undefined) return missed("cluster", name);
  const endpoints = targetsOf(cluster, config.assignments, call);
  return endpoints.length === 0 ? missed("endpoint", name) : { ...passed, kind: "forwarded", cluster: name, endpoints };
}

function serverTls({ transportSocket }: FilterChain): Passed["serverTls"] {
  const context =
    transportSocket?.configType.case === "typedConfig"
      ? anyUnpack(transportSocket.configType.value, DownstreamTlsContextSchema)
      : undefined;
  return context === undefined ? "plaintext" : context.requireClientCertificate === true ? "mutual" : "tls";
}
