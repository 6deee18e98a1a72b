import type { Labels } from "../base/labels.ts";
import type { Endpoint, Health } from "../model/endpoint.ts";
import { type Locality, NO_LOCALITY } from "../model/locality.ts";
import type { DeclaredPort } from "./declaration.ts";

/**
 * A workload that backs services, at one address: an inline endpoint of a ServiceEntry, a WorkloadEntry, a Pod, or an address of an
 * EndpointSlice. It knows nothing of the services it serves, so it is derived once however many ports and hosts share it.
 */
export interface Member extends Omit<Endpoint, "port" | "servicePort"> {
  readonly origin: "inline" | "workloadEntry" | "pod" | "slice";
  /**
   * Port numbers by name. The names are those of service ports, except for a pod: there they are names of container ports, which a
   * Service's `targetPort` may use.
   */
  readonly ports: Readonly<Record<string, number>>;
}

/** One workload as a source describes it, before labels, locality and network are settled. */
export interface RawMember {
  readonly origin: Member["origin"];
  readonly address: string;
  readonly ports: Readonly<Record<string, number>>;
  readonly labels: Labels;
  readonly namespace: string;
  readonly workload: string;
  readonly serviceAccount: string;
  readonly network: string;
  readonly nodeName: string;
  readonly hostname: string;
  readonly subdomain: string;
  readonly locality: Locality;
  readonly weight: number;
  readonly health: Health;
  readonly objectKey: string;
}

/** What is to be said of a workload of which nothing else is known. */
export const NOTHING_KNOWN = {
  serviceAccount: "",
  network: "",
  nodeName: "",
  hostname: "",
  subdomain: "",
  locality: NO_LOCALITY,
  weight: 1,
  health: "healthy",
} as const satisfies Partial<RawMember>;

const UNIX = "unix://";

/**
 * Makes members, sharing equal labels and localities: endpoints of one service mostly carry the same. Use one maker per derivation.
 * Fields are written out, here and in `endpointOf`: tens of thousands of these are made, and spreading is much slower.
 */
export function memberMaker(clusterId: string): (raw: RawMember) => Member {
  const pool = new Map<string, { readonly labels: Labels; readonly locality: Locality }>();
  return (raw) => {
    const unixPath = raw.address.startsWith(UNIX);
    const id = sharedId(raw);
    let shared = pool.get(id);
    if (shared === undefined) {
      shared = { labels: augmentLabels(raw, clusterId), locality: raw.locality };
      pool.set(id, shared);
    }
    return {
      origin: raw.origin,
      address: unixPath ? raw.address.slice(UNIX.length) : raw.address,
      unixPath,
      ports: raw.ports,
      labels: shared.labels,
      namespace: raw.namespace,
      workload: raw.workload,
      serviceAccount: raw.serviceAccount,
      network: raw.network,
      clusterId,
      nodeName: raw.nodeName,
      hostname: raw.hostname,
      subdomain: raw.subdomain,
      locality: shared.locality,
      weight: raw.weight > 0 ? raw.weight : 1,
      tlsMode: tlsModeOf(raw),
      health: raw.health,
      objectKey: raw.objectKey,
    };
  };
}

/** Spells out what augmented labels and locality are made from; lengths where a separator could be part of it. */
function sharedId({ labels, locality, network, nodeName }: RawMember): string {
  let id = `${locality.region}/${locality.zone}/${locality.subzone}/${network.length}${network}/${nodeName.length}${nodeName}`;
  for (const name in labels) {
    const value = labels[name] ?? "";
    id += `/${name.length},${value.length}:${name}=${value}`;
  }
  return id;
}

/** Whether the workload has a proxy that speaks mutual TLS: its label says so; one outside Kubernetes that has an identity is taken to have one. */
function tlsModeOf({ origin, labels, serviceAccount }: RawMember): Endpoint["tlsMode"] {
  const assumed = (origin === "inline" || origin === "workloadEntry") && serviceAccount !== "" ? "istio" : "disabled";
  return (labels["security.istio.io/tlsMode"] ?? assumed) === "istio" ? "istio" : "disabled";
}

/** Adds where the workload runs to its labels, as Istio does, so that subsets and failover priorities can name it. */
function augmentLabels(raw: RawMember, clusterId: string): Labels {
  const where: readonly (readonly [string, string])[] = [
    ["topology.kubernetes.io/region", raw.locality.region],
    ["topology.kubernetes.io/zone", raw.locality.zone],
    ["topology.istio.io/subzone", raw.locality.subzone],
    ["topology.istio.io/cluster", clusterId],
    ["kubernetes.io/hostname", raw.nodeName],
    ["topology.istio.io/network", raw.network],
  ];
  return Object.freeze({ ...raw.labels, ...Object.fromEntries(where.filter(([, value]) => value !== "")) });
}

/** The member as an endpoint of one service port; undefined where it does not serve that port. */
export function endpointOf(member: Member, port: DeclaredPort, source: "Kubernetes" | "External" | "Consul"): Endpoint | undefined {
  const number = member.unixPath ? 0 : source === "Kubernetes" ? kubernetesPort(member, port) : externalPort(member, port);
  if (number === undefined) return undefined;
  const endpoint: Endpoint = {
    address: member.address,
    unixPath: member.unixPath,
    port: number,
    servicePort: port.name,
    labels: member.labels,
    namespace: member.namespace,
    workload: member.workload,
    serviceAccount: member.serviceAccount,
    network: member.network,
    clusterId: member.clusterId,
    nodeName: member.nodeName,
    hostname: member.hostname,
    subdomain: member.subdomain,
    locality: member.locality,
    weight: member.weight,
    tlsMode: member.tlsMode,
    health: member.health,
    objectKey: member.objectKey,
  };
  return member.twins === undefined ? endpoint : { ...endpoint, twins: member.twins };
}

/** A ServiceEntry asks the workload's own port map first, then its `targetPort`. */
function externalPort(member: Member, port: DeclaredPort): number {
  const own = member.origin === "pod" ? undefined : member.ports[port.name];
  return own !== undefined && own > 0 ? own : typeof port.targetPort === "number" ? port.targetPort : port.number;
}

/** A Service relies on what the EndpointSlice says; a pod resolves named target ports; a WorkloadEntry may map either name, or does not serve a named one. */
function kubernetesPort(member: Member, port: DeclaredPort): number | undefined {
  const named = typeof port.targetPort === "string" ? member.ports[port.targetPort] : port.targetPort;
  switch (member.origin) {
    case "slice":
      return member.ports[port.name];
    case "pod":
      return named;
    default:
      return member.ports[port.name] ?? named;
  }
}
