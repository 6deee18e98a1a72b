import type { ClientStatus, ConfigDump, DumpedResource, Json, ObjectOrigin } from "../../debug/api-types.ts";
import { textAt } from "../json-path.ts";

/** One resource of a proxy, whatever its type. */
export interface ProxyResource {
  readonly name: string;
  readonly version: string;
  readonly status: ClientStatus;
  readonly error: string | undefined;
  readonly why: readonly ObjectOrigin[];
  readonly resource: Json;
}

export interface ProxyResources {
  readonly clusters: readonly ProxyResource[];
  readonly listeners: readonly ProxyResource[];
  readonly routes: readonly ProxyResource[];
  readonly endpoints: readonly ProxyResource[];
}

/** Takes a config dump apart. Of a cluster or listener that is being replaced, what the proxy uses now is taken. */
export function proxyResources({ configs }: ConfigDump): ProxyResources {
  const found: { clusters: ProxyResource[]; listeners: ProxyResource[]; routes: ProxyResource[]; endpoints: ProxyResource[] } = {
    clusters: [],
    listeners: [],
    routes: [],
    endpoints: [],
  };
  for (const part of configs) {
    switch (part["@type"]) {
      case "type.googleapis.com/envoy.admin.v3.ClustersConfigDump": {
        const active = (part.dynamicActiveClusters ?? []).map((entry) => resourceOf(entry, entry.cluster));
        const known = new Set(active.map(({ name }) => name));
        const warming = (part.dynamicWarmingClusters ?? [])
          .map((entry) => resourceOf(entry, entry.cluster))
          .filter(({ name }) => !known.has(name));
        found.clusters.push(...active, ...warming);
        break;
      }
      case "type.googleapis.com/envoy.admin.v3.ListenersConfigDump":
        for (const { activeState, warmingState, clientStatus, errorState, why } of part.dynamicListeners ?? []) {
          const state = activeState ?? warmingState;
          if (state === undefined) continue;
          const entry = {
            versionInfo: state.versionInfo,
            clientStatus,
            ...(errorState !== undefined && { errorState }),
            ...(why !== undefined && { why }),
          };
          found.listeners.push(resourceOf(entry, state.listener));
        }
        break;
      case "type.googleapis.com/envoy.admin.v3.RoutesConfigDump":
        found.routes.push(...(part.dynamicRouteConfigs ?? []).map((entry) => resourceOf(entry, entry.routeConfig)));
        break;
      case "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump":
        found.endpoints.push(...(part.dynamicEndpointConfigs ?? []).map((entry) => resourceOf(entry, entry.endpointConfig)));
        break;
    }
  }
  return found;
}

const resourceOf = (entry: DumpedResource, resource: Json): ProxyResource => ({
  name: textAt(resource, "name") || textAt(resource, "clusterName"),
  version: entry.versionInfo,
  status: entry.clientStatus,
  error: entry.errorState?.details,
  why: entry.why ?? [],
  resource,
});
