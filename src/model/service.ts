import type { Protocol } from "./protocol.ts";

/** How the endpoints of a service are found. */
export type Resolution = "static" | "dns" | "dnsRoundRobin" | "dynamicDns" | "none" | "alias";

export interface ServicePort {
  readonly name: string;
  readonly number: number;
  readonly protocol: Protocol;
  /** Port that connections go on to, where clients choose the address themselves (resolution "none") and the entry names another port. */
  readonly upstreamPort?: number;
  /** Those of the service's addresses that serve it, where several objects declare the host with addresses of their own; absent where all do. */
  readonly addresses?: readonly string[];
}

/** Names a service: several namespaces may declare the same host. */
export interface ServiceRef {
  readonly namespace: string;
  readonly host: string;
  /**
   * Where its namespace declares the host several times and exports that differently, clients see different services: this names what some
   * of them see, by the keys of the objects that declare it. Absent nearly always: what all see alike, or else what everybody may see.
   */
  readonly edition?: string | undefined;
}

/**
 * A service as the mesh knows it, whatever object it came from. It carries no endpoints: those change far more often and are
 * asked for separately, so that a change of endpoints re-runs nothing that only reads the service.
 */
export interface Service extends ServiceRef {
  /** Name of the object it was made from (the Service or ServiceEntry). */
  readonly name: string;
  readonly source: "Kubernetes" | "External" | "Consul";
  /** Key of the object it was made from, see `objectKey`. */
  readonly objectKey: string;
  readonly ports: readonly ServicePort[];
  /** Virtual addresses or CIDR ranges; empty when it has none. */
  readonly addresses: readonly string[];
  /** Those it has in other clusters, where clients resolve its name to them, by cluster; absent where it has none there. */
  readonly remoteAddresses?: Readonly<Record<string, readonly string[]>>;
  /** Address given by us (240.240.0.0/16, 2001:2::/48) to a host that has none, so that TCP ports can be told apart. */
  readonly autoAddresses: readonly string[];
  readonly resolution: Resolution;
  /** No virtual address and clients connect to endpoints directly (clusterIP: None). */
  readonly headless: boolean;
  readonly meshExternal: boolean;
  /** "." own namespace, "*" all, or namespace names; `~` nobody. Already defaulted from MeshConfig. */
  readonly exportTo: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Workload selector, where it has one. */
  readonly selector: Readonly<Record<string, string>> | undefined;
  /** SANs the user demands of the endpoints (ServiceEntry.subjectAltNames). */
  readonly subjectAltNames: readonly string[];
  /** Kubernetes ExternalName target, for resolution "alias". */
  readonly externalName: string | undefined;
  /** externalTrafficPolicy/internalTrafficPolicy Local, trafficDistribution. */
  readonly nodeLocal: boolean;
  readonly trafficDistribution: "any" | "preferClose" | "preferSameNode";
  readonly publishNotReadyAddresses: boolean;
  /** All that comes from one client address goes to one endpoint (sessionAffinity ClientIP); absent where it may go to any. */
  readonly clientAffinity?: true;
  /** Of all addresses its name resolves to, the first that takes a connection is used (annotation istio.io/connect-strategy). */
  readonly raceConnects: boolean;
  /** `namespace/account` of workloads that are not known one by one (annotations alpha.istio.io/*-serviceaccounts). */
  readonly declaredAccounts: readonly string[];
  readonly createdAt: number;
}

/** The addresses that clients in a cluster call a service by: those it has there, else those that it has here. "" is this cluster. */
export const addressesIn = (
  { addresses, remoteAddresses }: Pick<Service, "addresses" | "remoteAddresses">,
  cluster: string,
): readonly string[] => remoteAddresses?.[cluster] ?? addresses;

/** A service as clients of one of its ports know it: by the addresses that serve the port. */
export const servedAt = (service: Service, { addresses }: ServicePort): Service =>
  addresses === undefined ? service : { ...service, addresses };

/** Names a service among those of its namespace. */
export const hostKey = ({ host, edition }: ServiceRef): string => (edition === undefined ? host : `${host}#${edition}`);

/** Names a service in the mesh. */
export const serviceKey = (ref: ServiceRef): string => `${ref.namespace}/${hostKey(ref)}`;

/** The reference alone, of something that carries more. */
export const refOf = ({ namespace, host, edition }: ServiceRef): ServiceRef =>
  edition === undefined ? { namespace, host } : { namespace, host, edition };
