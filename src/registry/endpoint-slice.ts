import { canonicalAddress } from "../base/address.ts";
import type { EndpointPort, EndpointSlice, SliceEndpoint } from "../config/kinds/endpoint-slice/endpoint-slice.ts";
import type { EndpointAddress, Endpoints } from "../config/kinds/endpoints/endpoints.ts";
import type { ObjectReference } from "../config/kinds/object-reference.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import type { Health } from "../model/endpoint.ts";

/** An address that an EndpointSlice or an Endpoints object lists for its Service. */
export interface ListedAddress {
  readonly address: string;
  /** By the name of the Service's port. */
  readonly ports: Readonly<Record<string, number>>;
  readonly health: Health;
  readonly hostname: string;
  readonly nodeName: string;
  /** Key of the Pod it belongs to, where the object says so. */
  readonly podKey: string | undefined;
  readonly objectKey: string;
}

/** The addresses of an EndpointSlice. Slices of host names are left out, as in Istio: no cluster could hold them beside addresses. */
export function sliceAddresses(object: ConfigObject<EndpointSlice>): readonly ListedAddress[] {
  const { spec } = object;
  if (spec.addressType === "FQDN") return [];
  const ports = portsByName(spec.ports);
  return spec.endpoints.flatMap((endpoint) =>
    endpoint.addresses.map((address) => ({
      address: canonicalAddress(address),
      ports,
      health: healthOf(endpoint.conditions),
      hostname: endpoint.hostname ?? "",
      nodeName: endpoint.nodeName ?? "",
      podKey: podKeyOf(endpoint.targetRef, object.namespace),
      objectKey: objectKey(object),
    })),
  );
}

/** The addresses of an Endpoints object, the form that EndpointSlices replaced. */
export function endpointsAddresses(object: ConfigObject<Endpoints>): readonly ListedAddress[] {
  return object.spec.subsets.flatMap((subset) => {
    const ports = portsByName(subset.ports);
    const listed = (health: Health) => (one: EndpointAddress) => ({
      address: canonicalAddress(one.ip),
      ports,
      health,
      hostname: one.hostname ?? "",
      nodeName: one.nodeName ?? "",
      podKey: podKeyOf(one.targetRef, object.namespace),
      objectKey: objectKey(object),
    });
    return [...subset.addresses.map(listed("healthy")), ...subset.notReadyAddresses.map(listed("unhealthy"))];
  });
}

/** Not ready but still serving while it ends is draining: old connections may finish. An absent `ready` means ready. */
function healthOf(conditions: SliceEndpoint["conditions"]): Health {
  if (conditions.ready !== false) return "healthy";
  if (conditions.terminating !== true) return "unhealthy";
  return conditions.serving === false ? "terminating" : "draining";
}

function portsByName(ports: readonly EndpointPort[]): Readonly<Record<string, number>> {
  const byName: Record<string, number> = {};
  for (const { name, port, protocol } of ports) {
    if (port !== undefined && (protocol ?? "TCP") === "TCP") byName[name ?? ""] = port;
  }
  return byName;
}

const podKeyOf = (target: ObjectReference | undefined, namespace: string): string | undefined =>
  target?.kind === "Pod" && target.name !== undefined ? `Pod/${target.namespace ?? namespace}/${target.name}` : undefined;
