import { isIp } from "../../base/address.ts";
import { inCluster } from "../../config/object.ts";
import { addressesIn, type Service } from "../../model/service.ts";

/**
 * How a client's resolver completes short names: `own` for services of its namespace, `foreign` for those of others in the same
 * cluster domain, `none` where it completes nothing.
 */
export type Nearness = "own" | "foreign" | "none";

/** A service as far as its names matter. */
export type NamedService = Pick<Service, "host" | "addresses" | "remoteAddresses" | "autoAddresses" | "headless" | "source">;

/** Which of a service's addresses its clients call. */
export interface Addressing {
  /** Names resolve to the addresses we allocate. */
  readonly dnsCapture: boolean;
  /** The other cluster whose addresses of services count. */
  readonly remoteCluster: string;
}

/** Clients that agree on it share what is made. */
export const addressingId = ({ dnsCapture, remoteCluster }: Addressing): string => `${dnsCapture}${inCluster(remoteCluster)}`;

/**
 * The names under which clients reach a service: the full one, with and without the trailing dot, the short ones their resolver
 * would complete, and its virtual addresses. Pods behind a headless Service of Kubernetes have names below each of its names.
 * Ports are not listed: route tables ignore them.
 */
export function domainsOf(service: NamedService, nearness: Nearness, { dnsCapture, remoteCluster }: Addressing): readonly string[] {
  const { host } = service;
  const own = addressesIn(service, remoteCluster);
  const addresses = own.length > 0 || !dnsCapture ? own : service.autoAddresses;
  const names = [host, `${host}.`, ...shortNames(host, nearness)];
  const pods = service.headless && service.source === "Kubernetes" ? names.map((name) => `*.${name}`) : [];
  const called = addresses.filter((address) => address !== ANY_ADDRESS);
  return [...names, ...pods, ...(addresses.length === 1 ? called : called.filter(isIp)).map(literal)];
}

/** Stands for all addresses, so nobody calls it. */
const ANY_ADDRESS = "0.0.0.0";

const literal = (address: string): string => (address.includes(":") ? `[${address}]` : address);

/** `web.shop.svc.cluster.local` is `web`, `web.shop` and `web.shop.svc` to clients in namespace shop; the others do without the first. */
function shortNames(host: string, nearness: Nearness): readonly string[] {
  if (nearness === "none") return [];
  const name = host.slice(0, host.indexOf(SERVICES));
  const qualified = [name, `${name}.svc`];
  return nearness === "own" ? [host.slice(0, host.indexOf(".")), ...qualified] : qualified;
}

/**
 * How near a host is to clients with a DNS domain such as `shop.svc.cluster.local`. To a wildcard nobody is at home: without its domain it would be
 * all names.
 */
export function nearnessOf(host: string, dnsDomain: string): Nearness {
  const { namespace, suffix } = splitDomain(dnsDomain);
  const place = placeOf(host, suffix);
  if (place === undefined) return "none";
  return place === namespace && !host.startsWith("*") ? "own" : "foreign";
}

/** The namespace whose clients call a host by its first name alone, of the cluster that a DNS domain is of. */
export const homeOf = (host: string, dnsDomain: string): string | undefined =>
  host.startsWith("*") ? undefined : placeOf(host, splitDomain(dnsDomain).suffix);

/** What stands between the first name of a host and the part that all of its cluster share. */
function placeOf(host: string, suffix: string): string | undefined {
  if (suffix === "" || !host.endsWith(suffix)) return undefined;
  const first = host.indexOf(".");
  const end = host.indexOf(SERVICES);
  return first > 0 && first < end ? host.slice(first + 1, end) : undefined;
}

/** The name a client's resolver completes to a host where its domain is none of a cluster's (`web` in `shop.example`, for `web.shop.example`). */
export function completedNames(host: string, dnsDomain: string): readonly string[] {
  if (dnsDomain.includes(SERVICES)) return [];
  const labels = host.split(".");
  const domain = dnsDomain.split(".");
  let shared = 0;
  while (shared < Math.min(labels.length, domain.length) && labels.at(-1 - shared) === domain.at(-1 - shared)) shared += 1;
  const own = labels.slice(0, labels.length - shared);
  const name = own.join(".");
  if (shared === 0 || name === "" || name === "*") return [];
  return own.length === 2 && shared > 1 ? [name, `${name}.${labels[2]}`] : [name];
}

/** What stands before it in a name is a service and its namespace, what follows is the cluster's. */
const SERVICES = ".svc.";

/** `shop.svc.cluster.local` is namespace `shop` and what all of its cluster share, `.svc.cluster.local`; any other domain is neither. */
export function splitDomain(dnsDomain: string): { readonly namespace: string; readonly suffix: string } {
  const dot = dnsDomain.indexOf(SERVICES);
  return dot < 0 ? { namespace: "", suffix: "" } : { namespace: dnsDomain.slice(0, dot), suffix: dnsDomain.slice(dot) };
}
