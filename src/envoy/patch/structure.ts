import { type DescMessage, fromBinary, type JsonObject, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { type Bootstrap, BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { type FilterChain, FilterChainMatchSchema, FilterChainSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import type { VirtualHost } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { type RouteConfiguration, RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import {
  HttpConnectionManager_CodecType as CodecType,
  HttpConnectionManagerSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { QuicDownstreamTransportSchema } from "../../gen/envoy/extensions/transport_sockets/quic/v3/quic_transport_pb.js";
import type { Fault } from "./fault.ts";
import { typeNameOf } from "./merge-any.ts";
import { type AnyFilter, isPassing, isTerminal, TERMINAL_HTTP_FILTERS, TERMINAL_NETWORK_FILTERS } from "./terminal-filters.ts";

/** What Envoy refuses a resource for although each part of it is right by itself. */
export function structureFaults(schema: DescMessage, message: Message): readonly Fault[] {
  switch (schema.typeName) {
    case BootstrapSchema.typeName:
      return ((message as Bootstrap).staticResources?.listeners ?? []).flatMap((listener, index) =>
        listenerFaults(listener).map(({ path, reason }) => ({ path: `static_resources.listeners[${index}].${path}`, reason })),
      );
    case ListenerSchema.typeName:
      return listenerFaults(message as Listener);
    case RouteConfigurationSchema.typeName:
      return tableFaults(message as RouteConfiguration);
    case FilterChainSchema.typeName:
      return chainFaults(message as FilterChain, "");
    default:
      return [];
  }
}

function listenerFaults(listener: Listener): readonly Fault[] {
  const chains = listener.filterChains.map((chain, index) => ({ chain, path: `filter_chains[${index}]` }));
  const fallback = listener.defaultFilterChain === undefined ? [] : chainFaults(listener.defaultFilterChain, "default_filter_chain");
  if (chains.length === 0 && listener.defaultFilterChain === undefined && listener.udpListenerConfig === undefined)
    return [{ path: "filter_chains", reason: "must not be empty" }];
  return [...chains.flatMap(({ chain, path }) => chainFaults(chain, path)), ...twinFaults(chains), ...fallback];
}

/** Envoy cannot choose between chains that want the same connections. */
function twinFaults(chains: readonly { readonly chain: FilterChain; readonly path: string }[]): readonly Fault[] {
  const seen = new Map<string, string>();
  return chains.flatMap(({ chain, path }) => {
    const match = chain.filterChainMatch === undefined ? {} : toJson(FilterChainMatchSchema, chain.filterChainMatch);
    const wanted = takenBy(match as JsonObject);
    const twin = wanted.map((one) => seen.get(one)).find((other) => other !== undefined);
    for (const one of wanted) seen.set(one, path);
    return twin === undefined ? [] : [{ path, reason: `matches the same connections as ${twin}` }];
  });
}

/** More are not told apart: lists whose members multiply to that are the work of a program, and would be looked at for as long. */
const MOST_TAKEN = 10_000;

/** All that a match takes, as texts; of one that takes too much, itself. */
function takenBy(match: JsonObject): readonly string[] {
  const taken = Object.values(match).reduce((product: number, value) => product * (Array.isArray(value) ? value.length : 1), 1);
  return taken > MOST_TAKEN ? [JSON.stringify(match)] : combinations(Object.entries(match)).map((one) => one.join());
}

/** Of each list any one member. */
function combinations([first, ...rest]: readonly (readonly [string, JsonValue])[]): readonly (readonly string[])[] {
  if (first === undefined) return [[]];
  const [name, value] = first;
  const others = combinations(rest);
  return (Array.isArray(value) ? value : [value]).flatMap((one) => others.map((other) => [`${name}=${JSON.stringify(one)}`, ...other]));
}

function chainFaults(chain: FilterChain, path: string): readonly Fault[] {
  const at = path === "" ? "filters" : `${path}.filters`;
  const socket = chain.transportSocket?.configType;
  const isQuic = socket?.case === "typedConfig" && typeNameOf(socket.value) === QuicDownstreamTransportSchema.typeName;
  return [
    ...orderFaults(chain.filters, TERMINAL_NETWORK_FILTERS, at),
    ...chain.filters.flatMap((filter, index) => managerFaults(filter, `${at}[${index}]`, isQuic)),
  ];
}

/** A filter that ends a chain must be the last, and the last must be one. */
function orderFaults(filters: readonly AnyFilter[], terminal: ReadonlySet<string>, path: string): readonly Fault[] {
  const early = filters.slice(0, -1).findIndex((filter) => isTerminal(filter, terminal));
  const last = filters.at(-1);
  return [
    ...(early < 0 ? [] : [{ path: `${path}[${early}]`, reason: `(${filters[early]?.name}) must be the last filter` }]),
    ...(last === undefined || !isPassing(last, terminal)
      ? []
      : [{ path, reason: `cannot end with ${last.name}, which passes everything on` }]),
  ];
}

function managerFaults({ configType }: AnyFilter, path: string, isQuic: boolean): readonly Fault[] {
  if (configType.case !== "typedConfig") return [];
  const any = configType.value as { readonly typeUrl: string; readonly value: Uint8Array };
  if (typeNameOf(any) !== HttpConnectionManagerSchema.typeName) return [];
  const { httpFilters, routeSpecifier, codecType } = fromBinary(HttpConnectionManagerSchema, any.value);
  const at = `${path}.typed_config.http_filters`;
  return [
    ...(codecType === CodecType.HTTP3 && !isQuic
      ? [{ path: `${path}.typed_config.codec_type`, reason: "cannot be HTTP3 without QUIC" }]
      : []),
    ...orderFaults(httpFilters, TERMINAL_HTTP_FILTERS, at),
    ...(httpFilters.at(-1)?.disabled === true ? [{ path: at, reason: "cannot end with a filter that is disabled" }] : []),
    ...(httpFilters.length === 0 ? [{ path: at, reason: "must not be empty" }] : []),
    ...(routeSpecifier.case === "routeConfig" ? tableFaults(routeSpecifier.value, `${path}.typed_config.route_config.`) : []),
  ];
}

/** A domain may stand once in a table: Envoy refuses all of it otherwise. */
function tableFaults({ virtualHosts }: RouteConfiguration, prefix = ""): readonly Fault[] {
  const owners = new Map<string, string>();
  return virtualHosts.flatMap((host, index) => domainClashes(host, `${prefix}virtual_hosts[${index}]`, owners));
}

/** Domains of a host that others have already. `owners`: names of the hosts before it, by domain, to which its own are added. */
export function domainClashes(
  { name, domains }: Pick<VirtualHost, "name" | "domains">,
  path: string,
  owners: Map<string, string>,
): readonly Fault[] {
  return domains.flatMap((domain) => {
    const other = owners.get(domain.toLowerCase());
    owners.set(domain.toLowerCase(), name);
    return other === undefined ? [] : [{ path, reason: `(${name}) has domain ${domain}, which ${other} has already` }];
  });
}
