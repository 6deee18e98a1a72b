/**
 * The rest of the contract of `api-types.ts`: pages that people and Istio's tools read, and our `istioctl` does not. Names are Istio's where Istio has the page. What is `Iterable` is a
 * list in JSON, made while it is sent.
 */
import type { Json, ObjectOrigin, RegistryService } from "./api-types.ts";

/** Endpoints of one service in `/debug/endpointShardz`, by where they come from (`Kubernetes/cluster`); under its host and its namespace. */
export interface EndpointShards {
  readonly Shards: Readonly<Record<string, readonly ShardEndpoint[]>>;
  readonly ServiceAccounts: readonly string[];
}

/** An endpoint under Istio's names. */
export interface ShardEndpoint {
  readonly Labels: Readonly<Record<string, string>>;
  readonly Addresses: readonly string[];
  readonly ServicePortName: string;
  readonly ServiceAccount: string;
  readonly Network: string;
  readonly Locality: { readonly Label: string; readonly ClusterID: string };
  readonly EndpointPort: number;
  readonly LbWeight: number;
  readonly TLSMode: string;
  readonly Namespace: string;
  readonly WorkloadName: string;
  readonly HostName: string;
  readonly SubDomain: string;
  /** 1 healthy, 2 unhealthy, 3 draining, 4 terminating. */
  readonly HealthStatus: number;
  readonly NodeName: string;
}

/** A service port that a proxy serves, in `/debug/instancesz` under the proxy's name. */
export interface ServedPort {
  readonly Service: RegistryService;
  readonly Port: { readonly name: string; readonly port: number; readonly protocol: string; readonly TargetPort: number };
}

/** A gateway into a network, in `/debug/networkz`. */
export interface NetworkDoor {
  readonly Network: string;
  readonly Addr: string;
  readonly Port: number;
}

/** `/debug/sidecarz`: what a proxy may see. */
export interface SidecarScope {
  /** Of the Sidecar that applies; absent where none does. */
  readonly name?: string;
  readonly namespace: string;
  readonly outboundTrafficPolicy: { readonly mode: string; readonly egressProxy?: Json };
  readonly sidecar?: ObjectOrigin;
  readonly services: Iterable<ImportedService>;
  readonly egressListeners: Iterable<EgressListener>;
  /** Objects of which the rule for a host is made. */
  readonly destinationRules: Readonly<Record<string, readonly string[]>>;
}

/** A service that is imported; `ports` where only some of its ports are. */
export interface ImportedService {
  readonly hostname: string;
  readonly namespace: string;
  readonly ports?: readonly number[];
}

export interface EgressListener {
  readonly port?: { readonly number: number; readonly protocol: string; readonly name: string };
  readonly bind?: string;
  readonly captureMode: string;
  readonly services: Iterable<ImportedService>;
  /** Not imported, but led to by routes. */
  readonly destinations: Iterable<ImportedService>;
  readonly virtualServices: readonly string[];
}

/** A policy in `/debug/authenticationz`, `authorizationz` and `telemetryz`. */
export interface PolicyRecord {
  readonly name: string;
  readonly namespace: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: unknown;
}

/** Policies of one kind by namespace. Those of the root namespace hold everywhere. */
export type PoliciesByNamespace = Readonly<Record<string, readonly PolicyRecord[]>>;

/** `/debug/push_status`. */
export interface PushStatus {
  /** What came of the last push that is through. */
  readonly last?: {
    readonly push: number;
    readonly reason: string;
    /** Resources that changed, by type. */
    readonly resources: Readonly<Record<string, number>>;
    readonly proxies: number;
    readonly ms: number;
    readonly rejections: number;
    /** Proxies that had not acknowledged it in time. */
    readonly unsettled: number;
  };
  /** Proxies that have not acknowledged all they are due, and of which types. */
  readonly behind: readonly { readonly proxy: string; readonly types: readonly string[] }[];
  readonly rejected: readonly TroubledResource[];
  readonly failed: readonly TroubledResource[];
}

/** A resource that a proxy does not have as it should. */
export interface TroubledResource {
  readonly proxy: string;
  /** `CDS`, `LDS` … */
  readonly type: string;
  readonly name: string;
  readonly message: string;
}

/** A kind that is read, in `/debug/resourcesz`. */
export interface WatchedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}
