import type { Endpoint, Health } from "../model/endpoint.ts";
import { formatLocality } from "../model/locality.ts";
import type { Service } from "../model/service.ts";
import type { Registry } from "../registry/registry.ts";
import type { EndpointShards, ShardEndpoint } from "./api-mesh-types.ts";
import { servicesOf } from "./registry-dump.ts";

const HEALTH = { healthy: 1, unhealthy: 2, draining: 3, terminating: 4 } as const satisfies Record<Health, number>;

type ByNamespace = Readonly<Record<string, { toJSON(): EndpointShards }>>;

/** Endpoints by host, namespace and where they come from, as Istio's `/debug/endpointShardz` gives them; `host` narrows it. What is behind a host is looked up when it is written. */
export function endpointShards(registry: Registry, host: string | undefined): Readonly<Record<string, ByNamespace>> {
  const services = [...servicesOf(registry)].filter((service) => host === undefined || service.host === host);
  const entries = [...Map.groupBy(services, (service) => service.host)].map(([name, list]): [string, ByNamespace] => [
    name,
    Object.fromEntries(list.map((service) => [service.namespace, { toJSON: () => shardsOf(registry, service) }])),
  ]);
  return Object.fromEntries(entries);
}

function shardsOf(registry: Registry, service: Service): EndpointShards {
  const endpoints = service.ports.flatMap(({ number }) => registry.endpoints(service, number));
  const accounts = new Set(service.ports.flatMap(({ number }) => registry.serviceAccounts(service, number)));
  const shards = Map.groupBy(endpoints, ({ clusterId }) => `${service.source}/${clusterId}`);
  return {
    Shards: Object.fromEntries([...shards].map(([shard, list]) => [shard, list.map(shardEndpoint)])),
    ServiceAccounts: [...accounts].sort(),
  };
}

const shardEndpoint = (endpoint: Endpoint): ShardEndpoint => ({
  Labels: endpoint.labels,
  Addresses: [endpoint.address, ...(endpoint.twins ?? [])],
  ServicePortName: endpoint.servicePort,
  ServiceAccount: endpoint.serviceAccount,
  Network: endpoint.network,
  Locality: { Label: formatLocality(endpoint.locality), ClusterID: endpoint.clusterId },
  EndpointPort: endpoint.port,
  LbWeight: endpoint.weight,
  TLSMode: endpoint.tlsMode,
  Namespace: endpoint.namespace,
  WorkloadName: endpoint.workload,
  HostName: endpoint.hostname,
  SubDomain: endpoint.subdomain,
  HealthStatus: HEALTH[endpoint.health],
  NodeName: endpoint.nodeName,
});
