import type { AgentSettings } from "../settings/agent-table.ts";
import { bytesField, messageField, type StructValue, structBytes, textField } from "../wire/field-writer.ts";
import type { AgentProxyConfig } from "./proxy-config.ts";

/** Node metadata as Envoy sends them to the control plane. */
export type Metadata = Readonly<Record<string, StructValue>>;

/** Who a proxy says it is: the node of its bootstrap and of every discovery stream. */
export interface NodeIdentity {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Metadata;
  readonly locality: { readonly region: string; readonly zone: string; readonly subzone: string };
}

/** What the proxy is, as the first part of its node id says. */
export type AgentProxyType = "sidecar" | "router" | "waypoint";

export interface NodeFacts {
  readonly type: AgentProxyType;
  readonly settings: AgentSettings;
  readonly proxy: AgentProxyConfig;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostname: string;
  /** Addresses of the workload; the first is its own, others are further ones. */
  readonly addresses: readonly string[];
  /** Labels and annotations of the pod, from the files the kubelet writes. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Somebody serves it a certificate. */
  readonly hasIdentity: boolean;
  /** A server on this machine has credentials of its own. */
  readonly hasCredentials: boolean;
  readonly version: string;
}

/** A label that a Deployment gives its pods, another one with each change: it says nothing of the workload. */
const TEMPLATE_HASH = "pod-template-hash";
const META = "ISTIO_META_";
const META_JSON = "ISTIO_METAJSON_";

/** Puts the node together in Istio's form: id `type~IP~name.namespace~domain`, metadata under Istio's names. */
export function nodeIdentity(facts: NodeFacts): NodeIdentity {
  const { settings, proxy, type } = facts;
  const { name, address, addresses } = placeOf(facts);
  const namespace = settings.podNamespace;
  const given = givenMetadata(facts.env);
  const fixed = textMap(given.LABELS);
  const { [TEMPLATE_HASH]: _, ...podLabels } = facts.labels;
  const labels = { ...fixed, ...podLabels };
  const annotations = { ...textMap(given.ANNOTATIONS), ...facts.annotations };
  const metadata: Metadata = {
    NAME: name,
    NAMESPACE: namespace,
    INSTANCE_IPS: addresses.join(","),
    SERVICE_ACCOUNT: settings.serviceAccount,
    CLUSTER_ID: settings.clusterId,
    ISTIO_VERSION: facts.version,
    ...(settings.envoyStatusPort !== 0 && { ENVOY_STATUS_PORT: settings.envoyStatusPort }),
    ...(settings.envoyPrometheusPort !== 0 && { ENVOY_PROMETHEUS_PORT: settings.envoyPrometheusPort }),
    ...(settings.secureMetricsPort !== 0 && { ENVOY_SECURE_METRICS_PORT: settings.secureMetricsPort }),
    ...(settings.secureMergedMetricsPort !== 0 && { ENVOY_SECURE_MERGED_METRICS_PORT: settings.secureMergedMetricsPort }),
    ...(type === "sidecar" && { INTERCEPTION_MODE: proxy.interceptionMode || "REDIRECT", VHDS: "true" }),
    STANDARD_METRICS: "true",
    WORKLOAD_IDENTITY_SOCKET_FILE: settings.identitySocket,
    ...(facts.env.DNS_PROXY_ADDR && { DNS_PROXY_ADDR: facts.env.DNS_PROXY_ADDR }),
    ...(settings.exitOnZero && { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "true" }),
    ADMIN_PORT: proxy.adminPort,
    STATUS_PORT: proxy.statusPort,
    // Only what the workload says itself: the control plane puts it over the mesh's. Istio's takes even an empty one for all there is, so it is sent only where it was given.
    ...(Object.keys(proxy.given).length > 0 && { PROXY_CONFIG: proxy.given, PROXY_CONFIG_OVER: "mesh" }),
    ...given,
    LABELS: labels,
    ...(Object.keys(fixed).length > 0 && { STATIC_LABELS: fixed }),
    ...(Object.keys(annotations).length > 0 && { ANNOTATIONS: annotations }),
    ...(facts.hasCredentials && { credential: "true" }),
    ...(!facts.hasIdentity && { WORKLOAD_IDENTITY: "none" }),
  };
  return {
    id: `${type}~${address}~${name}.${namespace}~${domainOf(settings)}`,
    cluster: serviceCluster({ ...proxy, otherwise: settings.serviceCluster }, metadata),
    metadata,
    locality: localityOf(labels["istio-locality"] ?? ""),
  };
}

const domainOf = ({ domain, podNamespace }: AgentSettings): string => domain.replace(/\.$/, "") || `${podNamespace}.svc.cluster.local`;

/** The name that ProxyConfig has where nobody gave one. */
const UNNAMED = "istio-proxy";
const CANONICAL_NAME = ["service.istio.io/canonical-name", "app.kubernetes.io/name", "app"];

export interface NamingRules extends Pick<AgentProxyConfig, "serviceCluster" | "tracingServiceName"> {
  /** The name where ProxyConfig has none; may be empty too. */
  readonly otherwise: string;
}

/** What a workload is called in traces and in Envoy's own words: the name of a ProxyConfig, else the other that is given, else one of its labels with its namespace, by Istio's rules. */
export function serviceCluster(
  { serviceCluster: given, tracingServiceName, otherwise }: NamingRules,
  { LABELS, WORKLOAD_NAME, NAMESPACE }: Metadata,
): string {
  const labels = textMap(LABELS);
  const labelled = (names: readonly string[]): string | undefined => names.map((name) => labels[name]).find((value) => value !== undefined);
  const workload = typeof WORKLOAD_NAME === "string" && WORKLOAD_NAME !== "" ? WORKLOAD_NAME : UNNAMED;
  const named = [given, otherwise].find((name) => name !== "" && name !== UNNAMED);
  if (named !== undefined) return named;
  const canonical = labelled(CANONICAL_NAME) ?? workload;
  if (tracingServiceName === "CANONICAL_NAME_ONLY" && canonical !== UNNAMED) return canonical;
  if (tracingServiceName === "CANONICAL_NAME_AND_NAMESPACE") return `${canonical}.${NAMESPACE}`;
  return `${labelled(CANONICAL_NAME.toReversed()) ?? workload}.${NAMESPACE}`;
}

function placeOf({ settings, hostname, addresses }: NodeFacts): {
  readonly name: string;
  readonly address: string;
  readonly addresses: readonly string[];
} {
  const [address = "127.0.0.1"] = addresses;
  return { name: settings.podName || hostname, address, addresses: addresses.length === 0 ? [address] : addresses };
}

/** `ISTIO_META_X` is entry X; `ISTIO_METAJSON_LABELS` and `…ANNOTATIONS` are maps, any other `ISTIO_METAJSON_…` an object of entries. */
function givenMetadata(env: NodeFacts["env"]): Metadata {
  const metadata: Record<string, StructValue> = {};
  for (const [name, value = ""] of Object.entries(env)) {
    if (name.startsWith(META)) metadata[name.slice(META.length)] = value;
    else if (name.startsWith(META_JSON)) Object.assign(metadata, jsonEntries(name.slice(META_JSON.length), value));
  }
  return metadata;
}

function jsonEntries(name: string, text: string): Metadata {
  try {
    const value = JSON.parse(text) as StructValue;
    if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
    return name === "LABELS" || name === "ANNOTATIONS" ? { [name]: value } : (value as Metadata);
  } catch {
    return {};
  }
}

function textMap(value: StructValue | undefined): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).flatMap(([key, entry]) => (typeof entry === "string" ? [[key, entry]] : [])));
}

function localityOf(text: string): NodeIdentity["locality"] {
  const [region = "", zone = "", subzone = ""] = text.split(text.includes("/") ? "/" : ".");
  return { region, zone, subzone };
}

/** The bytes of an `envoy.config.core.v3.Node`. */
export function nodeBytes({ id, cluster, metadata, locality }: NodeIdentity): Buffer {
  return Buffer.concat([
    textField(1, id),
    textField(2, cluster),
    bytesField(3, structBytes(metadata)),
    messageField(4, [textField(1, locality.region), textField(2, locality.zone), textField(3, locality.subzone)]),
  ]);
}
