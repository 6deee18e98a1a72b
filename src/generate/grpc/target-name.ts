/** A name that a gRPC client dials: `xds:///host:port`. */
export interface TargetName {
  readonly host: string;
  readonly port: number;
}

/** What names of listeners begin with that gRPC servers ask for; the rest is the address they listen on. */
export const SERVER_PREFIX = "xds.istio.io/grpc/lds/inbound/";

/** Reads `host:port`; an IPv6 address stands in brackets. */
export function parseTargetName(name: string): TargetName | undefined {
  const colon = name.lastIndexOf(":");
  const port = Number(name.slice(colon + 1));
  const written = name.slice(0, Math.max(colon, 0));
  const host = written.startsWith("[") && written.endsWith("]") ? written.slice(1, -1) : written;
  return host === "" || !Number.isInteger(port) || port <= 0 || port > 65_535 ? undefined : { host, port };
}

/** The full names a host may stand for, in the order in which a resolver with this domain (`shop.svc.cluster.local`) would try them. */
export function fullNames(host: string, dnsDomain: string): readonly string[] {
  const dot = dnsDomain.indexOf(".svc.");
  if (dot < 0 || host.includes(":")) return [host];
  const suffix = dnsDomain.slice(dot);
  const [, ...rest] = host.split(".");
  if (rest.length === 0) return [host, `${host}.${dnsDomain}`];
  if (rest.length === 1) return [host, `${host}${suffix}`];
  return rest.length === 2 && rest[1] === "svc" ? [host, `${host}${suffix.slice(".svc".length)}`] : [host];
}
