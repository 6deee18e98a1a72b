import { serviceCluster } from "../model/service-cluster.ts";
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
const LOCALITY = "istio-locality";
const META = "ISTIO_META_";
const META_JSON = "ISTIO_METAJSON_";

/** Puts the node together in Istio's form: id `type~IP~name.namespace~domain`, metadata under Istio's names. */
export function nodeIdentity(facts: NodeFacts): NodeIdentity {
  const { settings, proxy, type } = facts;
  const { name, address, addresses } = placeOf(facts);
  const namespace = settings.podNamespace;
  const given = givenMetadata(facts.env);
  const fixed = withLocality(textMap(given.LABELS));
  const { [TEMPLATE_HASH]: _, ...podLabels } = facts.labels;
  const labels = withLocality({ ...fixed, ...podLabels });
  const annotations = { ...textMap(given.ANNOTATIONS), ...facts.annotations };
  const metadata: Metadata = {
    // As in Istio they are entries of their own too: EnvoyFilters may match by them.
    ...textMap(given.LABELS),
    ...textMap(given.ANNOTATIONS),
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
    ...bootstrapWishes(facts),
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
    locality: localityOf(labels[LOCALITY] ?? ""),
  };
}

/** What of this machine's environment shapes the bootstrap that the control plane makes. */
const bootstrapWishes = ({ settings, env }: NodeFacts): Metadata => ({
  ...(env.HOST_IP && { HOST_IP: env.HOST_IP }),
  ...(settings.dualStack && { DUAL_STACK: "true" }),
  ...(settings.statusPortProxyProtocol && { STATUS_PORT_PROXY_PROTOCOL: "true" }),
  ...(settings.compliancePolicy !== "" && { COMPLIANCE_POLICY: settings.compliancePolicy }),
});

const domainOf = ({ domain, podNamespace }: AgentSettings): string => domain.replace(/\.$/, "") || `${podNamespace}.svc.cluster.local`;

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
  const value = jsonObject(text);
  if (value === undefined) return {};
  return name === "LABELS" || name === "ANNOTATIONS" ? { [name]: value } : value;
}

function jsonObject(text: string): Metadata | undefined {
  try {
    const value = JSON.parse(text) as StructValue;
    return typeof value !== "object" || value === null || Array.isArray(value) ? undefined : (value as Metadata);
  } catch {
    return undefined;
  }
}

/** Variables that should hold an object as JSON and do not: they count for nothing. */
export const unreadMetadata = (env: NodeFacts["env"]): readonly string[] =>
  Object.keys(env).filter((name) => name.startsWith(META_JSON) && jsonObject(env[name] ?? "") === undefined);

function textMap(value: StructValue | undefined): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).flatMap(([key, entry]) => (typeof entry === "string" ? [[key, entry]] : [])));
}

/** The label may be written with dots, since values of labels have no slashes; others read it with slashes. */
function withLocality(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { [LOCALITY]: locality } = labels;
  return locality === undefined || locality.includes("/") ? labels : { ...labels, [LOCALITY]: locality.replaceAll(".", "/") };
}

function localityOf(text: string): NodeIdentity["locality"] {
  const [region = "", zone = "", subzone = ""] = text.split("/");
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
