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
  return [...names, ...pods, ...(addresses.length === 1 ? addresses : addresses.filter(isIp)).map(literal)];
}

const literal = (address: string): string => (address.includes(":") ? `[${address}]` : address);

/** `web.shop.svc.cluster.local` is `web`, `web.shop` and `web.shop.svc` to clients in namespace shop; the others do without the first. */
function shortNames(host: string, nearness: Nearness): readonly string[] {
  if (nearness === "none") return [];
  const [name, namespace] = host.split(".", 2);
  const qualified = [`${name}.${namespace}`, `${name}.${namespace}.svc`];
  return nearness === "own" ? [`${name}`, ...qualified] : qualified;
}

/** How near a host is to clients with a DNS domain such as `shop.svc.cluster.local`. */
export function nearnessOf(host: string, dnsDomain: string): Nearness {
  const home = homeOf(host, dnsDomain);
  if (home === undefined) return "none";
  return home === splitDomain(dnsDomain).namespace ? "own" : "foreign";
}

/** The namespace whose clients call a host by its first name alone, of the cluster that a DNS domain is of. */
export function homeOf(host: string, dnsDomain: string): string | undefined {
  const { suffix } = splitDomain(dnsDomain);
  if (suffix === "" || host.startsWith("*") || !host.endsWith(suffix)) return undefined;
  const between = host.indexOf(".");
  const end = host.length - suffix.length;
  return between > 0 && between < end && between === host.lastIndexOf(".", end - 1) ? host.slice(between + 1, end) : undefined;
}

/** `shop.svc.cluster.local` is namespace `shop` and what all of its cluster share, `.svc.cluster.local`; any other domain is neither. */
export function splitDomain(dnsDomain: string): { readonly namespace: string; readonly suffix: string } {
  const dot = dnsDomain.indexOf(".svc.");
  return dot < 0 ? { namespace: "", suffix: "" } : { namespace: dnsDomain.slice(0, dot), suffix: dnsDomain.slice(dot) };
}
