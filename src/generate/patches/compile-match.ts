import type { ClusterMatch, ListenerMatch, Patch, RouteMatch } from "../../envoy/patch/patch.ts";
import {
  EnvoyFilter_RouteConfigurationMatch_RouteMatch_Action as Action,
  type EnvoyFilter_ClusterMatch,
  type EnvoyFilter_EnvoyConfigObjectMatch,
  type EnvoyFilter_ListenerMatch,
  type EnvoyFilter_RouteConfigurationMatch,
} from "../../gen/istio/networking/v1alpha3/envoy_filter_pb.js";

/** The conditions of a patch on what it is applied to. Empty texts and zeros are conditions that were not given. */
export function matchOf(match: EnvoyFilter_EnvoyConfigObjectMatch | undefined): Pick<Patch, "listener" | "route" | "cluster"> {
  const objects = match?.objectTypes;
  switch (objects?.case) {
    case "listener":
      return { listener: listenerMatch(objects.value) };
    case "routeConfiguration":
      return { route: routeMatch(objects.value) };
    case "cluster":
      return { cluster: clusterMatch(objects.value) };
    default:
      return {};
  }
}

/** Keeps what is set. */
function given<T extends Readonly<Record<string, string | number>>>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== "" && value !== 0)) as Partial<T>;
}

function listenerMatch({ name, portNumber: port, filterChain, listenerFilter }: EnvoyFilter_ListenerMatch): ListenerMatch {
  const { filter, applicationProtocols = "" } = filterChain ?? {};
  const chain = {
    ...given({
      name: filterChain?.name ?? "",
      sni: filterChain?.sni ?? "",
      transportProtocol: filterChain?.transportProtocol ?? "",
      destinationPort: filterChain?.destinationPort ?? 0,
    }),
    ...(applicationProtocols !== "" && { applicationProtocols: applicationProtocols.split(",") }),
  };
  return {
    ...given({ name, port, listenerFilter }),
    ...(filterChain !== undefined && { chain }),
    ...(filter !== undefined && { filter: filter.name }),
    ...(filter?.subFilter !== undefined && { subFilter: filter.subFilter.name }),
  };
}

const ACTIONS = {
  [Action.ANY]: undefined,
  [Action.ROUTE]: "route",
  [Action.REDIRECT]: "redirect",
  [Action.DIRECT_RESPONSE]: "directResponse",
} as const;

function routeMatch({ name, portNumber: port, portName, gateway, vhost }: EnvoyFilter_RouteConfigurationMatch): RouteMatch {
  const route = vhost?.route;
  const action = route === undefined ? undefined : ACTIONS[route.action];
  return {
    ...given({ name, port, portName, gateway, vhost: vhost?.name ?? "", domain: vhost?.domainName ?? "" }),
    ...(route !== undefined && { route: { ...given({ name: route.name }), ...(action !== undefined && { action }) } }),
  };
}

const clusterMatch = ({ name, service, subset, portNumber: port }: EnvoyFilter_ClusterMatch): ClusterMatch =>
  given({ name, service, subset, port });
