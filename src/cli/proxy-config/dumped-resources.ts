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
  /** Virtual hosts of a route table that are resources of their own. */
  readonly hosts?: readonly Omit<ProxyResource, "resource">[];
}

export interface ProxyResources {
  readonly clusters: readonly ProxyResource[];
  readonly listeners: readonly ProxyResource[];
  readonly routes: readonly ProxyResource[];
  readonly endpoints: readonly ProxyResource[];
  readonly secrets: readonly ProxyResource[];
}

/** Takes a config dump apart. Of what is being replaced, what the proxy uses now is taken. */
export function proxyResources({ configs }: ConfigDump): ProxyResources {
  const found: { [part in keyof ProxyResources]: ProxyResource[] } = {
    clusters: [],
    listeners: [],
    routes: [],
    endpoints: [],
    secrets: [],
  };
  for (const part of configs) {
    switch (part["@type"]) {
      case "type.googleapis.com/envoy.admin.v3.ClustersConfigDump": {
        const active = (part.dynamicActiveClusters ?? []).map((entry) => resourceOf(entry, entry.cluster));
        const warming = (part.dynamicWarmingClusters ?? []).map((entry) => resourceOf(entry, entry.cluster));
        found.clusters.push(...activeFirst(active, warming));
        break;
      }
      case "type.googleapis.com/envoy.admin.v3.SecretsConfigDump": {
        const active = (part.dynamicActiveSecrets ?? []).map((entry) => resourceOf(entry, entry.secret));
        const warming = (part.dynamicWarmingSecrets ?? []).map((entry) => resourceOf(entry, entry.secret));
        found.secrets.push(...activeFirst(active, warming));
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
        for (const entry of part.dynamicRouteConfigs ?? []) {
          const hosts = entry.discoveredHosts?.map((host) => ({ name: host.name, ...stateOf(host) }));
          found.routes.push({ ...resourceOf(entry, entry.routeConfig), ...(hosts !== undefined && { hosts }) });
        }
        break;
      case "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump":
        found.endpoints.push(...(part.dynamicEndpointConfigs ?? []).map((entry) => resourceOf(entry, entry.endpointConfig)));
        break;
    }
  }
  return found;
}

function activeFirst(active: readonly ProxyResource[], warming: readonly ProxyResource[]): readonly ProxyResource[] {
  const known = new Set(active.map(({ name }) => name));
  return [...active, ...warming.filter(({ name }) => !known.has(name))];
}

const resourceOf = (entry: DumpedResource, resource: Json): ProxyResource => ({
  name: textAt(resource, "name") || textAt(resource, "clusterName"),
  ...stateOf(entry),
  resource,
});

const stateOf = (entry: DumpedResource): Pick<ProxyResource, "version" | "status" | "error" | "why"> => ({
  version: entry.versionInfo,
  status: entry.clientStatus,
  error: entry.errorState?.details,
  why: entry.why ?? [],
});
