import { isIp } from "../../base/address.ts";
import type { Service } from "../../model/service.ts";

/**
 * How a client's resolver completes short names: `own` for services of its namespace, `foreign` for those of others in the same
 * cluster domain, `none` where it completes nothing.
 */
export type Nearness = "own" | "foreign" | "none";

/** A service as far as its names matter. */
export type NamedService = Pick<Service, "host" | "addresses" | "autoAddresses" | "headless" | "source">;

/**
 * The names under which clients reach a service: the full one, with and without the trailing dot, the short ones their resolver
 * would complete, and its virtual addresses. Pods behind a headless Service of Kubernetes have names below each of its names.
 * Ports are not listed: route tables ignore them.
 */
export function domainsOf(service: NamedService, nearness: Nearness, dnsCapture: boolean): readonly string[] {
  const { host } = service;
  const addresses = service.addresses.length > 0 || !dnsCapture ? service.addresses : service.autoAddresses;
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
  const dot = dnsDomain.indexOf(".svc.");
  if (dot < 0 || host.startsWith("*")) return "none";
  const suffix = dnsDomain.slice(dot);
  if (!host.endsWith(suffix)) return "none";
  const name = host.slice(0, -suffix.length);
  const between = name.indexOf(".");
  if (between <= 0 || between !== name.lastIndexOf(".")) return "none";
  return name.slice(between + 1) === dnsDomain.slice(0, dot) ? "own" : "foreign";
}
