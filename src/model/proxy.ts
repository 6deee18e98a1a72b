import type { Locality } from "./locality.ts";

/** What a proxy is, as the first part of its node id says. */
export type ProxyType = "sidecar" | "router" | "waypoint";
/** How connections get into a sidecar. */
export type Interception = "REDIRECT" | "TPROXY" | "NONE";

/**
 * Who serves secrets on a proxy's machine: its agent, certificates as well as files (true); somebody else the certificate, so that Istio's agent has a socket
 * of its own for files ("aside", node metadata `file-credential`); nobody (false).
 */
export type LocalServer = boolean | "aside";

/**
 * What generators may know of a proxy: plain values, made once per stream from its node, its identity and the registry.
 * No query receives a whole view: each is keyed by the attributes it needs, so its result is shared by all proxies that agree on those.
 */
export interface ProxyView {
  readonly id: string;
  readonly type: ProxyType;
  readonly name: string;
  readonly namespace: string;
  /** DNS suffix of short names, e.g. `shop.svc.cluster.local`. */
  readonly dnsDomain: string;
  /** First is the primary one. */
  readonly addresses: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly serviceAccount: string;
  readonly locality: Locality;
  readonly network: string;
  readonly clusterId: string;
  /** The other cluster of the mesh it runs in, whose addresses count for it; empty where it runs in this one, or in none. */
  readonly remoteCluster: string;
  /** Name of its pod, where its addresses do not tell which it is; else empty. */
  readonly pod: string;
  /** What it says of its pod (labels, names of ports), as text, where nothing is known at its addresses; else empty. */
  readonly claim: string;
  readonly nodeName: string;
  readonly interception: Interception;
  /** Agent DNS proxying is on: host names resolve to auto-allocated addresses. */
  readonly dnsCapture: boolean;
  readonly istioVersion: string;
  /**
   * Whether the workload can get a certificate (an agent or SPIRE serves SDS beside it). Without one it is sent plaintext configuration
   * only: a listener or cluster that names a secret nobody serves would warm for ever. Node metadata WORKLOAD_IDENTITY "none" says so.
   */
  readonly hasIdentity: LocalServer;
  /** Whether the caller has proved that it is of this namespace and service account. Secrets go to those only. */
  readonly proven: boolean;
  /** Object key of the Sidecar that applies, or undefined. */
  readonly sidecar: string | undefined;
  readonly metadata: ProxyMetadata;
  /** Who reads the configuration: a gRPC library inside the application (node metadata GENERATOR); absent = Envoy. */
  readonly generator?: "grpc";
  /** The extensions its Envoy has, as it says itself; absent where it does not say. */
  readonly extensions?: ExtensionList;
}

/** What an Envoy's extensions are configured with. All proxies of one build share one list. */
export interface ExtensionList {
  readonly id: string;
  /** Kinds of extensions (`envoy.filters.http`) by the type of configuration that they take. */
  readonly kinds: ReadonlyMap<string, readonly string[]>;
}

/** A type of configuration that must be known to an Envoy. */
export interface ExtensionNeed {
  readonly type: string;
  /** How the kinds of extensions begin that are looked for here; undefined where it may be any message that an extension uses. */
  readonly kind: string | undefined;
}

/** Paths on a proxy's machine. Empty roots: those of the mesh, or for clients of the system. */
export interface CertificateFiles {
  readonly chain: string;
  readonly key: string;
  readonly roots: string;
}

/** The few entries of Istio's node metadata that change what is generated. */
export interface ProxyMetadata {
  readonly httpProxyPort: number;
  /** Certificates in files that stand in for the one the mesh gives (TLS_CLIENT_*, TLS_SERVER_*); undefined where it does not name a pair. */
  readonly clientFiles: CertificateFiles | undefined;
  readonly serverFiles: CertificateFiles | undefined;
  /** An SDS server on its machine has the credentials whose names begin with `sds://` (entry `credential`). */
  readonly credentialSocket: boolean;
  /** Labels that users gave it besides those of its workload; the workload's own go before them. */
  readonly staticLabels: Readonly<Record<string, string>>;
  /** Ports of the listeners in its bootstrap. */
  readonly bootstrapPorts: readonly number[];
  readonly idleTimeout: string | undefined;
  readonly unprivilegedPod: boolean;
  /** Clients that speak HTTP/1.0 are served. */
  readonly http10: boolean;
  /** Connections are spread over Envoy's workers exactly, by direction. */
  readonly exactBalance: { readonly inbound: boolean; readonly outbound: boolean };
  /** Where the machine of a proxy without an agent keeps the roots of the system; undefined where it does not say. */
  readonly systemRoots: string | undefined;
  readonly requestedNetworkView: readonly string[];
  /** The proxy takes virtual hosts one by one (VHDS): it says so, and its stream can carry them. */
  readonly vhds: boolean;
  /** It counts Istio's standard metrics with what upstream Envoy has, and an agent completes them (node metadata STANDARD_METRICS). */
  readonly standardMetrics: boolean;
  /** `cluster` of the node: what spans and statistics call the workload. */
  readonly nodeCluster: string;
  /** Merged ProxyConfig as canonical JSON: node metadata PROXY_CONFIG over mesh defaults. */
  readonly proxyConfig: string;
  /** All node metadata as canonical JSON: for EnvoyFilter matches and debug output only. */
  readonly raw: string;
}

/** Whether the proxy has an address of this family. */
export const supportsIpv4 = (view: Pick<ProxyView, "addresses">): boolean => view.addresses.some((address) => !address.includes(":"));
/** The same for IPv6. */
export const supportsIpv6 = (view: Pick<ProxyView, "addresses">): boolean => view.addresses.some((address) => address.includes(":"));
