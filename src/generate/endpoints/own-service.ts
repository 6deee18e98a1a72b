import type { Query } from "../../engine/index.ts";
import { outboundClusterName, SELF_DISCOVERY_CLUSTER } from "../../envoy/cluster/index.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { NameSet } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";

/** What tells which workload a proxy is beside. */
export type WorkloadQuery = Pick<ProxyView, "namespace" | "addresses" | "remoteCluster" | "pod" | "claim">;

/**
 * The outbound cluster in which a workload is one of many, that of its first port and oldest service; empty where it is in none. Envoy counts from
 * its endpoints how many of them share a zone, where the bootstrap has such a cluster (ISTIO_META_ENABLE_SELF_DISCOVERY).
 */
export function defineOwnService({ engine, registry }: Pick<GenerateContext, "engine" | "registry">): Query<WorkloadQuery, string> {
  return engine.query<WorkloadQuery, string>({
    name: "endpoints.ownService",
    id: ({ namespace, remoteCluster, pod, claim, addresses }) => [namespace, remoteCluster, pod, claim, ...addresses].join("|"),
    compute: (query) => {
      const [first] = query.addresses
        .flatMap((address) => registry.instancesAt(address, query.namespace, { ...query, cluster: query.remoteCluster }))
        .flatMap(({ service: ref, servicePort, endpoint }) => {
          const service = registry.service(ref);
          return service === undefined ? [] : [{ service, port: servicePort.number, served: endpoint.port }];
        })
        .sort((a, b) => a.served - b.served || a.service.createdAt - b.service.createdAt || (a.service.host < b.service.host ? -1 : 1));
      return first === undefined ? "" : outboundClusterName({ port: first.port, subset: "", host: first.service.host });
    },
  });
}

/** Whether a proxy asks for that cluster. */
export const asksForOwnService = ({ names }: NameSet): boolean => names.has(SELF_DISCOVERY_CLUSTER);
