import type { Endpoint } from "../model/endpoint.ts";
import { formatLocality } from "../model/locality.ts";
import type { Service } from "../model/service.ts";
import type { Registry } from "../registry/registry.ts";
import type { EndpointRecord, ObjectOrigin, PortEndpoints, RegistryService } from "./api-types.ts";
import { isoTime } from "./object-origin.ts";

type OriginOf = (key: string) => ObjectOrigin;

/** All services, by namespace and host (`/debug/registryz`), one at a time: there may be thousands. */
export function* registryServices(registry: Registry, originOf: OriginOf): Generator<RegistryService> {
  for (const service of servicesOf(registry)) yield registryService(service, originOf);
}

/** Endpoints of every service port (`/debug/endpointz`); `host` narrows it to one host. */
export function* registryEndpoints(registry: Registry, originOf: OriginOf, host?: string): Generator<PortEndpoints> {
  for (const service of servicesOf(registry)) {
    if (host !== undefined && service.host !== host) continue;
    for (const { name, number } of service.ports)
      yield {
        svc: `${service.host}:${number}`,
        namespace: service.namespace,
        portName: name,
        ep: registry.endpoints(service, number).map((endpoint) => endpointRecord(endpoint, originOf)),
      };
  }
}

/** All services, by namespace and host. */
export function* servicesOf(registry: Registry): Generator<Service> {
  for (const namespace of registry.namespaces())
    for (const ref of registry.servicesIn(namespace)) {
      const service = registry.service(ref);
      if (service !== undefined) yield service;
    }
}

/** One service in the shape of Istio's. */
export function registryService(service: Service, originOf: OriginOf): RegistryService {
  return {
    Attributes: {
      Name: service.name,
      Namespace: service.namespace,
      ServiceRegistry: service.source,
      Labels: service.labels,
      ExportTo: service.exportTo,
      LabelSelectors: service.selector ?? null,
    },
    hostname: service.host,
    ports: service.ports.map(({ name, number, protocol }) => ({ name, port: number, protocol })),
    ...(service.createdAt > 0 && { creationTime: isoTime(service.createdAt) }),
    defaultAddress: service.addresses[0] ?? "0.0.0.0",
    clusterVIPs: { Addresses: service.addresses },
    autoAllocatedAddresses: service.autoAddresses,
    Resolution: service.resolution,
    MeshExternal: service.meshExternal,
    headless: service.headless,
    origin: originOf(service.objectKey),
  };
}

function endpointRecord(endpoint: Endpoint, originOf: OriginOf): EndpointRecord {
  const { address, port, health, weight, network, workload, namespace, serviceAccount, tlsMode, labels } = endpoint;
  return {
    address: endpoint.unixPath ? `unix://${address}` : address,
    port,
    health,
    weight,
    locality: formatLocality(endpoint.locality),
    network,
    workload,
    namespace,
    serviceAccount,
    tlsMode,
    labels,
    origin: originOf(endpoint.objectKey),
  };
}
