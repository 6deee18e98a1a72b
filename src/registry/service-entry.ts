import { canonicalCidr } from "../base/address.ts";
import { type Labels, NO_LABELS } from "../base/labels.ts";
import type { ConfigObject } from "../config/object.ts";
import { objectKey } from "../config/object.ts";
import { type ServiceEntry, ServiceEntry_Location, ServiceEntry_Resolution } from "../gen/istio/networking/v1alpha3/service_entry_pb.js";
import type { WorkloadEntry } from "../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import { parseProtocol } from "../model/protocol.ts";
import type { Resolution } from "../model/service.ts";
import type { Declaration, DeclarationDefaults } from "./declaration.ts";
import { NOTHING_KNOWN, type RawMember } from "./member.ts";
import { type Placement, placeWorkload } from "./placement.ts";
import { trafficDistributionOf } from "./traffic-distribution.ts";

const RESOLUTION = {
  [ServiceEntry_Resolution.NONE]: "none",
  [ServiceEntry_Resolution.STATIC]: "static",
  [ServiceEntry_Resolution.DNS]: "dns",
  [ServiceEntry_Resolution.DNS_ROUND_ROBIN]: "dnsRoundRobin",
  [ServiceEntry_Resolution.DYNAMIC_DNS]: "dynamicDns",
} as const satisfies Record<ServiceEntry_Resolution, Resolution>;

/** What a ServiceEntry declares. */
export function declareServiceEntry(object: ConfigObject<ServiceEntry>, defaults: DeclarationDefaults): Declaration {
  const { spec } = object;
  const resolution = RESOLUTION[spec.resolution];
  return {
    namespace: object.namespace,
    name: object.name,
    source: "External",
    objectKey: objectKey(object),
    hosts: [...new Set(spec.hosts)],
    ports: spec.ports
      .map((port) => ({
        name: port.name,
        number: port.number,
        protocol: parseProtocol(port.protocol) ?? "Auto",
        targetPort: port.targetPort > 0 ? port.targetPort : port.number,
        ...(resolution === "none" && port.targetPort > 0 && { upstreamPort: port.targetPort }),
      }))
      .filter((port) => port.protocol !== "UDP"),
    addresses: [...new Set(spec.addresses.map(canonicalCidr))],
    resolution,
    headless: false,
    meshExternal: spec.location === ServiceEntry_Location.MESH_EXTERNAL,
    exportTo: spec.exportTo.length > 0 ? [...spec.exportTo] : defaults.exportTo,
    labels: object.labels,
    selector: spec.workloadSelector === undefined ? undefined : { ...spec.workloadSelector.labels },
    subjectAltNames: [...spec.subjectAltNames],
    externalName: undefined,
    nodeLocal: false,
    trafficDistribution: trafficDistributionOf({ annotations: object.annotations, namespace: defaults.distribution }),
    publishNotReadyAddresses: false,
    raceConnects: object.annotations["istio.io/connect-strategy"]?.toUpperCase() === "RACE_FIRST_TCP_CONNECT",
    declaredAccounts: [],
    createdAt: object.createdAt,
    wantsAddress:
      spec.addresses.length === 0 && resolution !== "none" && object.labels["networking.istio.io/enable-autoallocate-ip"] !== "false",
  };
}

/** A member without an address is somewhere in its network, behind the gateways there; one without either is nowhere. */
export const hasPlace = ({ address, network }: Pick<RawMember, "address" | "network">): boolean => address !== "" || network !== "";

/** The endpoints written into a ServiceEntry, in the order written. They are named `entry-0`, `entry-1` …, as in Istio. */
export function inlineMembers(object: ConfigObject<ServiceEntry>, placement: Placement): readonly RawMember[] {
  const { name, namespace } = object;
  const key = objectKey(object);
  const identityAt = (endpoint: WorkloadEntry, i: number): WorkloadIdentity => ({
    origin: "inline",
    labels: endpoint.labels,
    workload: `${name}-${i}`,
    namespace,
    objectKey: key,
  });
  return object.spec.endpoints.map((endpoint, i) => workloadMember(endpoint, identityAt(endpoint, i), placement)).filter(hasPlace);
}

/** What names a workload beside the fields that a WorkloadEntry and an inline endpoint share. */
export interface WorkloadIdentity {
  readonly origin: "inline" | "workloadEntry";
  readonly labels: Labels;
  readonly workload: string;
  readonly namespace: string;
  readonly objectKey: string;
}

/** A member out of the message that WorkloadEntries and inline endpoints share. */
export function workloadMember(entry: WorkloadEntry, identity: WorkloadIdentity, placement: Placement): RawMember {
  const { origin, labels, workload, namespace, objectKey: key } = identity;
  const { address, locality, network } = placeWorkload(
    { address: entry.address, locality: entry.locality, network: entry.network, labels },
    placement,
  );
  return {
    origin,
    address,
    ports: entry.ports,
    labels,
    namespace,
    workload,
    serviceAccount: entry.serviceAccount,
    network,
    nodeName: "",
    hostname: "",
    subdomain: "",
    locality,
    weight: entry.weight,
    health: "healthy",
    objectKey: key,
  };
}

/** The host of a DNS ServiceEntry without endpoints is its own endpoint, named like the entry. */
export function hostMember(declaration: Declaration, host: string): RawMember {
  return {
    origin: "inline",
    address: host,
    ports: {},
    labels: NO_LABELS,
    namespace: declaration.namespace,
    workload: declaration.name,
    ...NOTHING_KNOWN,
    objectKey: declaration.objectKey,
  };
}
