import type { Json } from "../../debug/api-types.ts";
import { at, listAt, textAt, textsAt } from "../json-path.ts";
import type { ProxyResource } from "./dumped-resources.ts";
import type { ProxyConfigFilter, Section } from "./section.ts";

type ListenerFilter = Pick<ProxyConfigFilter, "address" | "port" | "type" | "name">;

/** `istioctl proxy-config listener`: a row for each filter chain, with what it matches and where it leads. */
export function listenerSection(listeners: readonly ProxyResource[], filter: ListenerFilter): Section {
  return {
    title: "listeners",
    header: ["ADDRESSES", "PORT", "MATCH", "DESTINATION"],
    entries: listeners.filter((listener) => keeps(listener, filter)).map((resource) => ({ resource, rows: rowsOf(resource.resource) })),
  };
}

function keeps({ name, resource }: ProxyResource, { address, port, type, name: wanted }: ListenerFilter): boolean {
  const socket = at(resource, "address", "socketAddress");
  return (
    (wanted === undefined || name === wanted) &&
    (address === undefined || textAt(socket, "address") === address) &&
    (port === undefined || textAt(socket, "portValue") === String(port)) &&
    (type === undefined || chainsOf(resource).some((chain) => kindOf(chain) === type.toUpperCase()))
  );
}

const chainsOf = (listener: Json): readonly Json[] => {
  const fallback = at(listener, "defaultFilterChain");
  return [...listAt(listener, "filterChains"), ...(fallback === undefined ? [] : [fallback])];
};

function rowsOf(listener: Json): readonly (readonly string[])[] {
  const address = textAt(listener, "address", "socketAddress", "address") || textAt(listener, "address", "pipe", "path");
  const port = textAt(listener, "address", "socketAddress", "portValue");
  return chainsOf(listener).map((chain) => [address, port, matchText(at(chain, "filterChainMatch")), destinationText(chain)]);
}

const HTTP_MANAGER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const TCP_PROXY = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";

const configOf = (chain: Json, type: string): Json | undefined =>
  listAt(chain, "filters")
    .map((filter) => at(filter, "typedConfig"))
    .find((config) => textAt(config, "@type") === type);

const kindOf = (chain: Json): "HTTP" | "TCP" => (configOf(chain, HTTP_MANAGER) === undefined ? "TCP" : "HTTP");

function matchText(match: Json | undefined): string {
  const ranges = listAt(match, "prefixRanges").map((range) => `${textAt(range, "addressPrefix")}/${textAt(range, "prefixLen") || "0"}`);
  const parts = [
    ["SNI", textsAt(match, "serverNames").join(",")],
    ["Trans", textAt(match, "transportProtocol")],
    ["App", textsAt(match, "applicationProtocols").join(",")],
    ["Addr", ranges.join(",").replaceAll(/\/(32|128)(?=,|$)/g, "")],
    ["Port", textAt(match, "destinationPort")],
  ].filter(([, value]) => value !== "");
  return parts.length === 0 ? "ALL" : parts.map(([name, value]) => `${name}: ${value}`).join("; ");
}

function destinationText(chain: Json): string {
  const manager = configOf(chain, HTTP_MANAGER);
  if (manager !== undefined) {
    const name = textAt(manager, "rds", "routeConfigName");
    return name === "" ? `Inline Route: ${inlineRoutes(manager)}` : `Route: ${name}`;
  }
  const proxy = configOf(chain, TCP_PROXY);
  const single = textAt(proxy, "cluster");
  if (single !== "") return `Cluster: ${single}`;
  const weighted = listAt(proxy, "weightedClusters", "clusters").map((one) => `${textAt(one, "name")} (${textAt(one, "weight")})`);
  return weighted.length > 0
    ? `Clusters: ${weighted.join(", ")}`
    : `Filters: ${listAt(chain, "filters")
        .map((filter) => textAt(filter, "name"))
        .join(", ")}`;
}

const inlineRoutes = (manager: Json): string =>
  listAt(manager, "routeConfig", "virtualHosts")
    .flatMap((host) => listAt(host, "routes").map((route) => textAt(route, "match", "path") || `${textAt(route, "match", "prefix")}*`))
    .join(", ");
