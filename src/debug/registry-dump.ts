import type { Endpoint } from "../model/endpoint.ts";
import { formatLocality } from "../model/locality.ts";
import type { Service } from "../model/service.ts";
import type { Registry } from "../registry/registry.ts";
import type { EndpointRecord, ObjectOrigin, PortEndpoints, RegistryService } from "./api-types.ts";
import { isoTime } from "./object-origin.ts";

type OriginOf = (key: string) => ObjectOrigin;

/** All services, by namespace and host (`/debug/registryz`). */
export function registryServices(registry: Registry, originOf: OriginOf): readonly RegistryService[] {
  return servicesOf(registry).map((service) => registryService(service, originOf));
}

/** Endpoints of every service port (`/debug/endpointz`); `host` narrows it to one host. */
export function registryEndpoints(registry: Registry, originOf: OriginOf, host?: string): readonly PortEndpoints[] {
  return servicesOf(registry)
    .filter((service) => host === undefined || service.host === host)
    .flatMap((service) =>
      service.ports.map(({ name, number }) => ({
        svc: `${service.host}:${number}`,
        namespace: service.namespace,
        portName: name,
        ep: registry.endpoints(service, number).map((endpoint) => endpointRecord(endpoint, originOf)),
      })),
    );
}

const servicesOf = (registry: Registry): readonly Service[] =>
  registry.namespaces().flatMap((namespace) => registry.servicesIn(namespace).flatMap((ref) => registry.service(ref) ?? []));

function registryService(service: Service, originOf: OriginOf): RegistryService {
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
