import { isIp } from "../../base/address.ts";
import type { Service } from "../../model/service.ts";

/**
 * The names under which clients with a DNS domain reach a service: the full one, with and without the trailing dot, the short ones
 * their resolver would complete, and its virtual addresses. Ports are not listed: route tables ignore them.
 */
export function domainsOf(service: Pick<Service, "host" | "addresses" | "autoAddresses">, client: { readonly dnsDomain: string; readonly dnsCapture: boolean }): readonly string[] {
  const { host } = service;
  const addresses = service.addresses.length > 0 || !client.dnsCapture ? service.addresses : service.autoAddresses;
  return [host, `${host}.`, ...shortNames(host, client.dnsDomain), ...addresses.filter(isIp).map(literal)];
}

const literal = (address: string): string => (address.includes(":") ? `[${address}]` : address);

/** `web.shop.svc.cluster.local` is `web` and `web.shop` to clients in namespace shop, `web.shop` and `web.shop.svc` to the others. */
export function shortNames(host: string, dnsDomain: string): readonly string[] {
  if (host.startsWith("*") || isIp(host)) return [];
  const client = dnsDomain.split(".");
  const svc = client.indexOf("svc");
  if (svc < 0) return [];
  const clusterSuffix = `.${client.slice(svc).join(".")}`;
  if (!host.endsWith(clusterSuffix)) return [];
  const name = host.slice(0, -clusterSuffix.length);
  const [service = "", namespace = "", ...rest] = name.split(".");
  if (service === "" || namespace === "" || rest.length > 0) return [];
  const qualified = [`${service}.${namespace}`, `${service}.${namespace}.svc`];
  return namespace === client[0] ? [service, ...qualified] : qualified;
}
