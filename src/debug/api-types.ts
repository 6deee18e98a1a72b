/**
 * The contract of the debug pages: what they answer with, as JSON. `istioctl` and the dashboard read these types and nothing else of the
 * control plane. Fields in snake_case are Istio's own (`/debug/syncz`), kept because Kiali and Istio's tools read them.
 */

/** JSON as it came over the wire. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** A page of the index at `/debug`. `/debug/list` has their names alone, as Istio's has. */
export interface DebugPage {
  readonly path: string;
  readonly about: string;
  /** Where it is not asked with GET. */
  readonly method?: "POST";
}

/** How a proxy stands with one type. `NOT SENT`: it did not ask for it, or nothing went out yet. */
export type SyncState = "SYNCED" | "STALE" | "NOT SENT" | "NACKED";

/** One connected proxy in `/debug/syncz`. `…_sent` and `…_acked` are nonces: equal ones mean in step. */
export interface SyncStatus {
  readonly cluster_id: string;
  /** `name.namespace`. */
  readonly proxy: string;
  readonly proxy_type: string;
  readonly istio_version: string;
  readonly cluster_sent?: string;
  readonly cluster_acked?: string;
  readonly listener_sent?: string;
  readonly listener_acked?: string;
  readonly route_sent?: string;
  readonly route_acked?: string;
  readonly endpoint_sent?: string;
  readonly endpoint_acked?: string;
  readonly extensionconfig_sent?: string;
  readonly extensionconfig_acked?: string;
  /** By type URL: the same of all types. */
  readonly resources: Readonly<Record<string, ResourceStatus>>;
  /** What follows is ours. */
  readonly connection_id: string;
  readonly address: string;
  readonly protocol: "delta" | "sotw";
  readonly connected_at: string;
  /** The control plane that serves it. */
  readonly istiod: string;
  readonly types: readonly TypeSync[];
}

/** One type of one proxy as Istio tells it. */
export interface ResourceStatus {
  readonly sent?: string;
  readonly acked?: string;
  readonly sentTime?: string;
  readonly lastError?: string;
}

/** One type of one proxy, with what went wrong. */
export interface TypeSync {
  /** `CDS`, `LDS` … */
  readonly type: string;
  readonly state: SyncState;
  readonly resources: number;
  readonly sent_at?: string;
  readonly acked_at?: string;
  readonly nacks: number;
  readonly last_error?: string;
  /** Resources the proxy refused; it keeps the version named, or has none. */
  readonly rejected: readonly { readonly name: string; readonly version: string; readonly error: string; readonly kept?: string }[];
  /** Resources that could not be made; the last good version is served where there is one. */
  readonly failed: readonly { readonly name: string; readonly message: string }[];
}

/** `/debug/adsz` and `/debug/connections`. */
export interface Connections {
  readonly totalClients: number;
  readonly clients: Iterable<Connection>;
}

export interface Connection {
  readonly connectionId: string;
  readonly connectedAt: string;
  readonly address: string;
  readonly protocol: "delta" | "sotw";
  /** Only in `adsz`: what the proxy said of itself and how it is seen. */
  readonly metadata?: Json;
  readonly labels?: Readonly<Record<string, string>>;
  readonly locality?: { readonly region: string; readonly zone: string; readonly sub_zone: string };
  readonly sidecar?: string;
  /** Only in `adsz`: names subscribed to by type URL, `*` for all. */
  readonly watches?: Readonly<Record<string, readonly string[]>>;
}

/** One object of `/debug/configz`, as `kubectl get -o json` would show it, and how it stands. */
export interface ConfigRecord {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly creationTimestamp?: string;
    readonly generation?: number;
  };
  /** Content; kinds such as EndpointSlice have theirs at the top, beside `metadata`. */
  readonly [field: string]: unknown;
  readonly origin: ConfigOrigin;
}

export interface ConfigOrigin {
  readonly source: string;
  /** `file:line`, where it comes from a file. */
  readonly at?: string;
  /** The document is broken now; this is the last good version of it. */
  readonly stale?: true;
  readonly staleSince?: string;
  /** What of its status counts: the health of a WorkloadEntry, for example. */
  readonly observed?: string;
}

/** A problem in force, in `/debug/problems`. */
export interface ProblemRecord {
  readonly code: string;
  readonly level: "error" | "warning";
  readonly object: { readonly kind: string; readonly namespace: string; readonly name: string };
  /** `spec.http[0].route` */
  readonly path: string;
  readonly message: string;
  readonly file?: string;
  readonly line?: number;
}

/** One service of `/debug/registryz`, in the shape of Istio's. */
export interface RegistryService {
  readonly Attributes: {
    readonly Name: string;
    readonly Namespace: string;
    readonly ServiceRegistry: string;
    readonly Labels: Readonly<Record<string, string>>;
    readonly ExportTo: readonly string[];
    readonly LabelSelectors: Readonly<Record<string, string>> | null;
  };
  readonly hostname: string;
  readonly ports: readonly { readonly name: string; readonly port: number; readonly protocol: string }[];
  readonly creationTime?: string;
  readonly defaultAddress: string;
  readonly clusterVIPs: { readonly Addresses: readonly string[] };
  readonly autoAllocatedAddresses: readonly string[];
  readonly Resolution: string;
  readonly MeshExternal: boolean;
  readonly headless: boolean;
  readonly origin: ObjectOrigin;
}

/** An object and where it is written. */
export interface ObjectOrigin {
  /** `Kind/namespace/name` */
  readonly object: string;
  /** `file:line` */
  readonly at?: string;
  /** What stands there now is broken: the last good version is in force. */
  readonly stale?: true;
}

/** Endpoints of one service port in `/debug/endpointz`. */
export interface PortEndpoints {
  /** `host:port` */
  readonly svc: string;
  readonly namespace: string;
  readonly portName: string;
  readonly ep: readonly EndpointRecord[];
}

export interface EndpointRecord {
  readonly address: string;
  readonly port: number;
  readonly health: string;
  readonly weight: number;
  readonly locality: string;
  readonly network: string;
  readonly workload: string;
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly tlsMode: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly origin: ObjectOrigin;
}

/** `/debug/config_dump`: Envoy's admin ConfigDump in protobuf's JSON. Empty fields are left out, as there. */
export interface ConfigDump {
  readonly configs: readonly ConfigDumpPart[];
}

/** A section of `/debug/config_dump`, as Envoy's own dump has it. */
export type ConfigDumpPart = ClustersDump | ListenersDump | RoutesDump | EndpointsDump | SecretsDump | ExtensionsDump;

export interface ClustersDump {
  readonly "@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump";
  readonly dynamicActiveClusters?: readonly (DumpedResource & { readonly cluster: Json })[];
  /** Offered to the proxy, and not (yet) acknowledged by it. */
  readonly dynamicWarmingClusters?: readonly (DumpedResource & { readonly cluster: Json })[];
}

export interface ListenersDump {
  readonly "@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump";
  readonly dynamicListeners?: readonly DumpedListener[];
}

export interface DumpedListener {
  readonly name: string;
  readonly activeState?: { readonly versionInfo: string; readonly listener: Json };
  readonly warmingState?: { readonly versionInfo: string; readonly listener: Json };
  readonly clientStatus: ClientStatus;
  readonly errorState?: { readonly details: string; readonly versionInfo: string };
  readonly why?: readonly ObjectOrigin[];
}

export interface RoutesDump {
  readonly "@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump";
  readonly dynamicRouteConfigs?: readonly DumpedRouteTable[];
}

/** A table with all its virtual hosts, those that are sent as resources of their own (VHDS) among them, as Envoy shows it. */
export interface DumpedRouteTable extends DumpedResource {
  readonly routeConfig: Json;
  /** Which of its virtual hosts those are. */
  readonly discoveredHosts?: readonly (DumpedResource & { readonly name: string })[];
}

export interface EndpointsDump {
  readonly "@type": "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump";
  readonly dynamicEndpointConfigs?: readonly (DumpedResource & { readonly endpointConfig: Json })[];
}

/** Certificates and CAs; what is secret of them is redacted. */
export interface SecretsDump {
  readonly "@type": "type.googleapis.com/envoy.admin.v3.SecretsConfigDump";
  readonly dynamicActiveSecrets?: readonly (DumpedResource & { readonly name: string; readonly secret: Json })[];
  readonly dynamicWarmingSecrets?: readonly (DumpedResource & { readonly name: string; readonly secret: Json })[];
}

/** Filters that are sent as resources of their own (ECDS). */
export interface ExtensionsDump {
  readonly "@type": "type.googleapis.com/envoy.admin.v3.EcdsConfigDump";
  readonly ecdsFilters?: readonly (DumpedResource & { readonly ecdsFilter: Json })[];
}

/** Envoy's ClientResourceStatus. `REQUESTED`: on its way. */
export type ClientStatus = "REQUESTED" | "ACKED" | "NACKED";

export interface DumpedResource {
  readonly versionInfo: string;
  readonly clientStatus: ClientStatus;
  readonly errorState?: { readonly details: string; readonly versionInfo: string };
  /** Only with `?why`: the objects it was made from. */
  readonly why?: readonly ObjectOrigin[];
}

/** `/debug/mesh`. */
export interface MeshState {
  /** MeshConfig in force, with all defaults. */
  readonly mesh: Json;
  readonly networks: Json;
  /** How the process runs: its own fields of mesh.yaml. */
  readonly process: unknown;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Why the files as they are now are not in force; empty when they are. */
  readonly reloadProblems: readonly ProblemRecord[];
  /** Changes that were read but take effect only at the next start. */
  readonly needsRestart: readonly { readonly field: string; readonly sentence: string }[];
}

/** `/debug/classes`: how results are shared between proxies, by type. */
export interface TypeClasses {
  readonly type: string;
  readonly streams: number;
  /** Different resources offered to anyone, and the bytes they take once. */
  readonly resources: number;
  readonly bytes: number;
  /** Attributes that are equal within each class and differ between classes: what split them. */
  readonly splitBy: readonly string[];
  readonly classes: readonly ResourceClass[];
}

/** Proxies that share one set of resources. */
export interface ResourceClass {
  readonly streams: number;
  readonly resources: number;
  readonly bytes: number;
  /** Some of its proxies. */
  readonly proxies: readonly string[];
}

/** `/version` of the control plane. */
export interface VersionInfo {
  readonly version: string;
  /** Version of Istio whose API it follows. */
  readonly istio?: string;
  readonly [field: string]: unknown;
}

/** Answer of `/api/workload-token`: what a machine needs to join. */
export interface JoinAnswer {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Roots with which istiod is verified, in PEM. */
  readonly roots: string;
  readonly trustDomain: string;
}
