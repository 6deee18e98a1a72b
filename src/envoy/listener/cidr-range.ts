import { formatIp, parseCidr } from "../../base/address.ts";

/** An address range as Envoy wants it; a single address is a range of one. */
export function cidrRange(text: string): { readonly addressPrefix: string; readonly prefixLen: number } {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new Error(`not an address range: ${text}`);
  return { addressPrefix: formatIp({ family: cidr.family, value: cidr.base }), prefixLen: cidr.prefix };
}
