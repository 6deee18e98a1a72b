import type { DnsCacheInput } from "../dns-cache.ts";
import type { LoadAssignmentInput } from "../endpoint/load-assignment.ts";
import type { UpstreamTlsInput } from "../tls/index.ts";

/** All that may influence one cluster. It is also the cache key, so the builder can read nothing else. */
export interface ClusterInput {
  readonly name: string;
  /** Name it has in statistics, where it is not its own. */
  readonly statName?: string;
  readonly discovery: "eds" | "strictDns" | "logicalDns" | "originalDst" | "static" | DynamicDnsInput;
  readonly connectTimeoutMs: number;
  readonly loadBalancer: LoadBalancerInput;
  readonly limits: LimitsInput | undefined;
  readonly outlier: OutlierInput | undefined;
  readonly http: HttpProtocolInput | undefined;
  readonly transport: TransportInput;
  readonly keepalive: KeepaliveInput | undefined;
  /** Addresses connections are made from, the preferred one first; empty = the system chooses. */
  readonly bind: readonly string[];
  /** Endpoints of clusters that do not ask for them by EDS. */
  readonly assignment: LoadAssignmentInput | undefined;
  readonly dns: DnsInput | undefined;
  readonly metadata: ClusterMetadataInput | undefined;
  /** Port connections go to, where the client's choice counts for the address only (`originalDst`). */
  readonly upstreamPort?: number;
}

/** Hosts are the names that requests ask for, resolved when they do. */
export interface DynamicDnsInput {
  readonly cache: DnsCacheInput;
  /** Neither SNI nor the name to verify has to follow the request: Envoy refuses that unless it is said. */
  readonly fixedNames: boolean;
}

export interface LoadBalancerInput {
  readonly algorithm: LoadBalancerAlgorithm;
  /** Share of healthy hosts, in percent, below which health is ignored; undefined = Envoy's own default (50). */
  readonly panicThreshold: number | undefined;
  /** `weighted`: weights of localities count, needed for distribution and failover between them. A record: Envoy prefers its own zone itself. */
  readonly localities: "weighted" | ZoneAwareInput | undefined;
  /** A session may lead to an endpoint that is draining. */
  readonly drainsSessions?: boolean;
}

/** Zone-aware routing: the share of a zone follows from how many proxies and endpoints it has. */
export interface ZoneAwareInput {
  /** False switches off what Envoy would do by itself. */
  readonly enabled: boolean;
  /** Clusters smaller than this are not routed by zone; undefined = Envoy's default (6). */
  readonly minClusterSize: number | undefined;
}

export type LoadBalancerAlgorithm =
  | { readonly kind: "roundRobin" | "leastRequest"; readonly warmup: WarmupInput | undefined }
  | { readonly kind: "random" | "clusterProvided" }
  /** Sizes that are not given are Envoy's own. */
  | { readonly kind: "ringHash"; readonly minimumRingSize: number | undefined }
  | { readonly kind: "maglev"; readonly tableSize: number | undefined };

/** A new host gets traffic little by little during this time. */
export interface WarmupInput {
  readonly windowMs: number;
  readonly minimumPercent: number | undefined;
  readonly aggression: number | undefined;
}

/** Circuit breaker thresholds; undefined = no limit. Envoy's own defaults (1024) are never wanted. */
export interface LimitsInput {
  readonly connections: number | undefined;
  readonly pendingRequests: number | undefined;
  readonly requests: number | undefined;
  readonly retries: number | undefined;
  readonly retryBudget:
    | {
        readonly percent: number;
        readonly minConcurrency: number;
        /** Time over which requests are counted; undefined = those in flight. */
        readonly intervalMs: number | undefined;
      }
    | undefined;
}

/** Ejection of hosts that fail. undefined = not said, so Envoy's default holds; 0 = that reason is switched off. */
export interface OutlierInput {
  readonly consecutive5xx: number | undefined;
  readonly consecutiveGatewayFailures: number | undefined;
  readonly splitLocalOrigin: boolean;
  readonly consecutiveLocalOriginFailures: number | undefined;
  readonly intervalMs: number | undefined;
  readonly baseEjectionMs: number | undefined;
  readonly maxEjectionPercent: number | undefined;
}

export interface HttpProtocolInput {
  /** HTTP version spoken upstream; `downstream` = the one the client speaks. */
  readonly version: "http1" | "http2" | "downstream";
  readonly idleTimeoutMs: number | undefined;
  readonly maxRequestsPerConnection: number | undefined;
  readonly maxConnectionDurationMs: number | undefined;
  /** This and the keepalive count where HTTP/2 is spoken for sure. */
  readonly maxConcurrentStreams: number | undefined;
  readonly http2Keepalive: { readonly intervalMs: number | undefined; readonly timeoutMs: number | undefined } | undefined;
  /** Take SNI, and the name the certificate must carry, from the request's host. */
  readonly autoSni: boolean;
  readonly autoSanValidation: boolean;
  /** Headers of HTTP/1 go out as the client spelt them. */
  readonly preserveHeaderCase?: boolean;
  /** Status codes that count against a host, in place of all from 500 up; outlier detection asks. */
  readonly outlierCodes?: readonly number[];
}

/** How connections are secured. `auto`: mutual TLS to endpoints whose metadata says they take it, plain text to the others. */
export interface TransportInput {
  readonly security:
    | { readonly kind: "plain" }
    | { readonly kind: "tls"; readonly tls: UpstreamTlsInput }
    | { readonly kind: "auto"; readonly tls: UpstreamTlsInput };
  readonly proxyProtocol: "v1" | "v2" | undefined;
}

export interface KeepaliveInput {
  readonly probes: number | undefined;
  readonly timeSeconds: number | undefined;
  readonly intervalSeconds: number | undefined;
}

export interface DnsInput {
  readonly family: "v4" | "v6" | "all";
  readonly refreshMs: number;
}

/** What tools and filters may want to know of a cluster, under Istio's metadata namespace. */
export interface ClusterMetadataInput {
  /** Path of the DestinationRule it was shaped by. */
  readonly config: string | undefined;
  readonly subset: string | undefined;
  readonly services: readonly { readonly host: string; readonly name: string; readonly namespace: string }[];
  readonly external: boolean;
}
