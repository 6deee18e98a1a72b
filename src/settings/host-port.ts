import { isIP } from "node:net";

/** A TCP address to listen on or to call. An empty host means all interfaces. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Reads `host:port`, `:port` or `[v6]:port`; a sentence says what is wrong otherwise. Port 0 lets the system choose one. */
export function parseHostPort(text: string): HostPort | string {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):([^:]*)$/.exec(text);
  if (match === null) return `"${text}" is not host:port (an IPv6 host stands in brackets)`;
  const [, bracketed, plain = "", portText = ""] = match;
  if (bracketed !== undefined && isIP(bracketed) !== 6) return `"${bracketed}" is not an IPv6 address`;
  if (/[^A-Za-z0-9._-]/.test(plain)) return `"${plain}" is not a host name or IP address`;
  const port = Number(portText);
  if (!/^\d{1,5}$/.test(portText) || port > 65_535) return `port "${portText}" is not a number from 0 to 65535`;
  return { host: bracketed ?? plain, port };
}
