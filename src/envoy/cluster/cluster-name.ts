/** Names of clusters, as Istio gives them: tools, EnvoyFilters and dashboards depend on them. */

export const PASSTHROUGH_CLUSTER = "PassthroughCluster";
export const INBOUND_PASSTHROUGH_CLUSTER = "InboundPassthroughCluster";
/** Where hosts nobody declared go, found by their names (outboundTrafficPolicy ALLOW_ANY_DYNAMIC_DNS). */
export const ANY_NAME_CLUSTER = "AllowAnyDynamicDNSCluster";
export const BLACK_HOLE_CLUSTER = "BlackHoleCluster";
/** The cluster of the workload's own kind that stands in its bootstrap, in Istio's, too. */
export const SELF_DISCOVERY_CLUSTER = "local_cluster";

/** What an outbound cluster stands for. An empty subset is the whole service. */
export interface OutboundClusterName {
  readonly port: number;
  readonly subset: string;
  readonly host: string;
}

/** `outbound|80|v1|reviews.default.svc.cluster.local` */
export const outboundClusterName = ({ port, subset, host }: OutboundClusterName): string => `outbound|${port}|${subset}|${host}`;

/**
 * `outbound_.80_.v1_.reviews.default.svc.cluster.local`: the same as a valid DNS name. It is the SNI of mutual TLS inside the mesh, and the
 * name of the clusters an east-west gateway forwards such connections to by their SNI alone.
 */
export const sniClusterName = ({ port, subset, host }: OutboundClusterName): string => `outbound_.${port}_.${subset}_.${host}`;

/** `inbound|8080||`, by the port the workload listens on. */
export const inboundClusterName = (port: number): string => `inbound|${port}||`;

export interface ParsedClusterName extends OutboundClusterName {
  /** Written in the form of an SNI. */
  readonly sni: boolean;
}

/** Reads an outbound cluster name of either form; undefined for any other text. */
export function parseOutboundClusterName(name: string): ParsedClusterName | undefined {
  const sni = name.startsWith("outbound_.");
  if (!sni && !name.startsWith("outbound|")) return undefined;
  const [, port = "", subset = "", ...host] = name.split(sni ? "_." : "|");
  const number = Number(port);
  if (!Number.isInteger(number) || number <= 0 || host.length === 0) return undefined;
  return { port: number, subset, host: host.join(sni ? "_." : "|"), sni };
}
