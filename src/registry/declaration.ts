import { isWildcardHost } from "../base/hostname.ts";
import { clusterOfKey } from "../config/object.ts";
import type { Service, ServicePort } from "../model/service.ts";

/** A port as its object declares it: with the port on the workload, by number or (Kubernetes) by name. */
export interface DeclaredPort extends ServicePort {
  readonly targetPort: number | string;
}

/**
 * What one Service or ServiceEntry declares about each of its hosts. Endpoints are not part of it, so an edit of endpoints alone
 * leaves the declaration equal and stops there.
 */
export interface Declaration extends Omit<Service, "host" | "edition" | "ports" | "autoAddresses"> {
  readonly hosts: readonly string[];
  readonly ports: readonly DeclaredPort[];
  /** It has no address, and clients could use one to tell its TCP traffic from that of others. */
  readonly wantsAddress: boolean;
}

/** What holds for an object that does not say it itself: from the mesh, or from its namespace. */
export interface DeclarationDefaults {
  readonly exportTo: readonly string[];
  /** What the annotation of the namespace says about the endpoints that clients prefer. */
  readonly distribution: string;
}

/** Order of precedence among objects that declare the same host: Kubernetes first, of this cluster first, then older first, then by namespace and name. */
export function compareDeclarations(a: Declaration, b: Declaration): number {
  const source = Number(a.source !== "Kubernetes") - Number(b.source !== "Kubernetes");
  if (source !== 0) return source;
  const cluster = Number(clusterOfKey(a.objectKey) !== "") - Number(clusterOfKey(b.objectKey) !== "");
  if (cluster !== 0) return cluster;
  if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
  return a.objectKey < b.objectKey ? -1 : a.objectKey > b.objectKey ? 1 : 0;
}

/**
 * The declarations, of those for one host of one namespace in order of precedence, whose endpoints make up the service. The first always
 * does; so do Services of that name in other clusters; a ServiceEntry beside a Kubernetes Service adds static endpoints to it; ServiceEntries
 * go together when they resolve alike, since one cluster cannot mix resolutions.
 */
export function contributors(declarations: readonly Declaration[]): readonly Declaration[] {
  const [first, ...others] = declarations;
  if (first === undefined || others.length === 0) return declarations;
  if (first.source === "Kubernetes") {
    const wanted = (other: Declaration): string => (other.source === "Kubernetes" ? first.resolution : "static");
    return [first, ...others.filter((other) => other.resolution === wanted(other))];
  }
  return [first, ...others.filter((other) => other.resolution === first.resolution)];
}

/**
 * One service out of all that declare its host in its namespace, in order of precedence. The first declaration decides everything; ports
 * and addresses that only later ServiceEntries have are added, and each port is served at the addresses of those that declare it. A Kubernetes Service is taken as it is, with the addresses
 * that it has in other clusters beside its own.
 */
export function mergeDeclarations(host: string, declarations: readonly [Declaration, ...Declaration[]]): Omit<Service, "autoAddresses"> {
  const { hosts: _hosts, wantsAddress: _wantsAddress, ...first } = declarations[0];
  const remoteAddresses = first.source === "Kubernetes" ? addressesElsewhere(declarations) : [];
  const parts = first.source === "Kubernetes" ? [first] : contributors(declarations);
  const addresses = [...new Set(parts.flatMap((part) => part.addresses))];
  const ports = Map.groupBy(
    parts.flatMap((part) => part.ports.map(({ targetPort: _, ...port }) => ({ port, at: part.addresses }))),
    ({ port }) => port.number,
  );
  return {
    ...first,
    host,
    ports: [...ports.values()].flatMap((declared) => servedPort(declared, addresses)),
    addresses,
    ...(remoteAddresses.length > 0 && { remoteAddresses: Object.fromEntries(remoteAddresses) }),
  };
}

interface PlacedPort {
  readonly port: ServicePort;
  readonly at: readonly string[];
}

/** One port out of those of a number: the first counts, at the addresses of all. */
function servedPort([first, ...others]: readonly PlacedPort[], all: readonly string[]): readonly ServicePort[] {
  if (first === undefined) return [];
  const addresses = others.length === 0 ? first.at : [...new Set([first, ...others].flatMap(({ at }) => at))];
  return [addresses.length === all.length ? first.port : { ...first.port, addresses }];
}

/** The addresses that other clusters have given to a Service, by cluster. */
const addressesElsewhere = (declarations: readonly Declaration[]): readonly (readonly [string, readonly string[]])[] =>
  contributors(declarations)
    .map(({ objectKey, addresses }) => [clusterOfKey(objectKey), addresses] as const)
    .filter(([cluster, addresses]) => cluster !== "" && addresses.length > 0);

/** Whether a host, declared so, gets an address from us: it has none, and somebody can ask for it; for a wildcard only where proxies resolve names themselves. */
export function needsAddress(host: string, declarations: readonly Declaration[]): boolean {
  return (
    declarations[0]?.wantsAddress === true &&
    (!isWildcardHost(host) || declarations[0].resolution === "dynamicDns") &&
    contributors(declarations).every((part) => part.addresses.length === 0)
  );
}
