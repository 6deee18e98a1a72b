import { isIP, isIPv4, isIPv6 } from "node:net";
import { quote } from "../../base/quote.ts";

/** Addresses on the file system start with this. */
export const UNIX_PREFIX = "unix://";

/** Whether the text is an IPv4 or IPv6 address, a zone included, without brackets. */
export const isAddress = (text: string): boolean => isIP(text) !== 0;

/** What keeps the text from being an IP address. */
export const addressFault = (text: string): string | undefined => (isAddress(text) ? undefined : `${quote(text)} is not an IP address`);

/** What keeps the text from being an IP address or a CIDR block such as 10.0.0.0/8. Host bits may be set. */
export function subnetFault(text: string): string | undefined {
  const slash = text.indexOf("/");
  if (slash === -1) return addressFault(text);
  const address = text.slice(0, slash);
  const bits = text.slice(slash + 1);
  const most = isIPv4(address) ? 32 : isIPv6(address) && !address.includes("%") ? 128 : -1;
  return /^(0|[1-9]\d{0,2})$/.test(bits) && Number(bits) <= most ? undefined : `${quote(text)} is not a CIDR block`;
}

/** The path of a Unix domain socket (without `unix://`): absolute and a file, or `@name` for an abstract one. */
export function unixPathFault(path: string): string | undefined {
  if (path === "") return "the path of a Unix domain socket must not be empty";
  if (path.startsWith("@")) return undefined;
  return path.startsWith("/") && !path.endsWith("/") ? undefined : `${quote(path)} is not an absolute path to a file`;
}

/** Splits `host:port` and `[address]:port` the way Go's net.SplitHostPort does; a text that has no port gives undefined. */
export function splitHostPort(text: string): { readonly host: string; readonly port: string } | undefined {
  const match = /^(?:\[(?<v6>[^[\]]*)\]|(?<host>[^:[\]]*)):(?<port>[^:]*)$/.exec(text);
  if (match?.groups === undefined) return undefined;
  return { host: match.groups.v6 ?? match.groups.host ?? "", port: match.groups.port ?? "" };
}
