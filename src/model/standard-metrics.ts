/**
 * What Envoy counts Istio's standard metrics by and what the agent makes of it. Envoy knows a request; who the two workloads are it knows only in
 * short (the endpoint's metadata, the peer's address). It counts by that, and the agent puts the labels in when it is asked for metrics.
 */

/**
 * Labels of Envoy's series that stand for others and are not passed on. They are short because every filter chain names them once for each metric, and begin
 * with what no label of a user's begins with.
 */
export const RAW = {
  /**
   * At the server the address of the client, where its certificate says that it is of the mesh; at the client
   * `workload;namespace;canonical service;canonical revision;cluster` of the endpoint.
   */
  peer: "_peer",
  /** Metadata of the cluster as JSON: its services by host, name and namespace. */
  services: "_services",
  /** Name of the cluster, at the client. */
  cluster: "_cluster",
  /** Number of a connection that is reported while it lasts. */
  connection: "_connection",
  /** Messages of a call of gRPC: those of the client, a comma, those of the server. */
  messages: "_messages",
  /** Labels that a Telemetry takes away, between commas. */
  without: "_without",
} as const;

/** End of the names of what counts messages of gRPC; before it the direction, or nothing where both are in one. */
export const MESSAGES = "messages_total";

/** End of the names of what is reported of connections while they last, in place of `total`. */
export const LIVE_SUFFIX = "live";

const SIDE = ["workload", "workload_namespace", "canonical_service", "canonical_revision", "app", "version", "cluster"] as const;

/** Labels of one workload, as they are called behind `source_` and `destination_`. */
export type WorkloadLabel = (typeof SIDE)[number];
/** All of them. */
export const WORKLOAD_LABELS: readonly WorkloadLabel[] = SIDE;

/** Labels of the source that need its address. */
export const SOURCE_LABELS: readonly string[] = SIDE.map((label) => `source_${label}`);
/** Labels of the destination that need its endpoint. */
export const DESTINATION_LABELS: readonly string[] = SIDE.map((label) => `destination_${label}`);
/** Labels of the service that was called. */
export const SERVICE_LABELS: readonly string[] = ["destination_service", "destination_service_name", "destination_service_namespace"];

/** Labels that Envoy gives, and that others are worked out from: Envoy always counts by them. */
export const NEEDED_LABELS: readonly string[] = ["reporter", "source_principal", "destination_principal", "grpc_response_status"];

/** All that the agent works out. */
export const DERIVED_LABELS: readonly string[] = [
  ...SOURCE_LABELS,
  ...DESTINATION_LABELS,
  ...SERVICE_LABELS,
  "request_protocol",
  "connection_security_policy",
];

/** What a label says whose value nobody knows. */
export const UNKNOWN = "unknown";

/** What labels of workloads say that are too many to be told apart. */
export const OVERFLOW = "overflow";

/** Canonical service of a workload, by the labels Istio looks at. */
export const canonicalService = (labels: Readonly<Record<string, string>>, workload: string): string =>
  labels["service.istio.io/canonical-name"] ?? labels["app.kubernetes.io/name"] ?? labels.app ?? workload;

/** Canonical revision of a workload; empty where no label says it. */
export const canonicalRevision = (labels: Readonly<Record<string, string>>): string =>
  labels["service.istio.io/canonical-revision"] ?? labels["app.kubernetes.io/version"] ?? labels.version ?? "";
