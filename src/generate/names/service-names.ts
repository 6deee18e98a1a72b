import { ipFamily, isIp } from "../../base/address.ts";
import type { Endpoint } from "../../model/endpoint.ts";
import { addressesIn, type Service } from "../../model/service.ts";

/** What of a workload decides the addresses its resolver gives out. */
export interface ResolverTraits {
  /** DNS is captured: hosts without addresses have those we gave them. */
  readonly autoAddresses: boolean;
  /** Families of the workload's own addresses. */
  readonly families: readonly (4 | 6)[];
  readonly network: string;
  readonly clusterId: string;
  /** The other cluster whose addresses count. */
  readonly remoteCluster: string;
}

/** A name and what it resolves to. */
export interface NameEntry {
  readonly host: string;
  readonly ips: readonly string[];
  readonly registry: string;
  /** Kubernetes alone: the agent answers for the short forms of the name as well. */
  readonly shortname: string;
  readonly namespace: string;
}

/** Names of Services that other clusters export: short forms mean the one of the own cluster. */
const CLUSTER_SET = ".clusterset.local";

/**
 * The names a service adds to the table of a workload. With virtual addresses it is one name; a service without any, whose clients choose an
 * endpoint themselves, resolves to its endpoints, and those that have a host name are names of their own, as in Kubernetes.
 */
export function namesOf(service: Service, traits: ResolverTraits, endpoints: () => readonly Endpoint[]): readonly NameEntry[] {
  const virtual = virtualAddresses(service, traits);
  if (virtual !== undefined) return virtual.length === 0 ? [] : [{ ...ownName(service), ips: virtual }];
  if (service.resolution !== "none" || service.ports.length === 0) return [];
  const reachable = distinct(endpoints().filter((endpoint) => isAnswer(endpoint, traits)));
  if (reachable.length === 0) return [];
  return [{ ...ownName(service), ips: reachable.map(({ address }) => address) }, ...podNames(service, reachable, traits)];
}

/** Undefined where the service has none at all. Ranges are no answer. What a user wrote is given to all; what a cluster gave, to those of its family. */
function virtualAddresses(service: Service, { autoAddresses, families, remoteCluster }: ResolverTraits): readonly string[] | undefined {
  const usable = (address: string): boolean => families.some((family) => family === ipFamily(address));
  const addresses = addressesIn(service, remoteCluster);
  if (addresses.length > 0) return addresses.filter((address) => isIp(address) && (service.source === "External" || usable(address)));
  const given = autoAddresses ? service.autoAddresses.filter(usable) : [];
  return given.length === 0 ? undefined : given;
}

function ownName({ host, name, namespace, source }: Service): Omit<NameEntry, "ips"> {
  const short = source === "Kubernetes" && !host.endsWith(CLUSTER_SET);
  return { host, registry: source, shortname: short ? name : "", namespace: short ? namespace : "" };
}

/** Endpoints in other networks are not reached by their addresses. */
const isAnswer = ({ address, unixPath, health, network }: Endpoint, traits: ResolverTraits): boolean =>
  !unixPath && isIp(address) && health === "healthy" && (network === "" || traits.network === "" || network === traits.network);

/** Endpoints of several ports are the same workloads. */
const distinct = (endpoints: readonly Endpoint[]): readonly Endpoint[] =>
  [...new Map(endpoints.toReversed().map((endpoint) => [endpoint.address, endpoint])).values()].reverse();

/** `mysql-0.mysql.shop.svc.cluster.local`. Where several clusters have a workload of that name, the own cluster's is meant. */
function podNames(
  { host, namespace, source }: Service,
  endpoints: readonly Endpoint[],
  { clusterId }: ResolverTraits,
): readonly NameEntry[] {
  const dot = host.indexOf(".");
  if (dot < 0) return [];
  const named = endpoints.filter(({ hostname, subdomain }) => hostname !== "" && subdomain !== "");
  return [...Map.groupBy(named, ({ hostname, subdomain }) => `${hostname}.${subdomain}`)].map(([shortname, all]) => {
    const own = all.filter((endpoint) => clusterId === "" || endpoint.clusterId === clusterId);
    const ips = (own.length > 0 ? own : all).map(({ address }) => address);
    return { host: `${shortname}${host.slice(dot)}`, ips, registry: source, shortname, namespace };
  });
}
