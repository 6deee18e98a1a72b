import { fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { msOfDuration } from "../base/duration.ts";
import { isOn } from "../base/go-bool.ts";
import { portFault } from "../config/checks/port.ts";
import { syntaxFault } from "../config/checks/regex.ts";
import { parseGoDuration } from "../config/parse/go-duration.ts";
import type { AddressFamilies } from "../envoy/bootstrap/families.ts";
import type { ManagedBootstrapInput } from "../envoy/bootstrap/managed-bootstrap.ts";
import type { StatsInput } from "../envoy/bootstrap/stats-config.ts";
import { ApiConfigSourceSchema } from "../gen/envoy/config/core/v3/config_source_pb.js";
import { type ProxyConfig, ProxyConfig_TracingServiceName as TracingServiceName } from "../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { serviceCluster } from "../model/service-cluster.ts";
import { HOST_IP, remoteServicesOf, type ServiceFacts } from "./bootstrap-services.ts";

/** Statistics that are kept whatever a workload asks for: readiness, denials and routes with names of their own hang on them. */
const ALWAYS = {
  prefixes: ["cluster_manager", "listener_manager", "server", "cluster.xds-grpc", "wasm"],
  suffixes: ["rbac.allowed", "rbac.denied", "shadow_allowed", "shadow_denied"],
  regexps: ["vhost\\..*\\.route\\..*"],
};
/** What an agent that waits for connections to end asks for. */
const DRAINING_SUFFIX = "downstream_cx_active";

const RUNTIME: JsonObject = {
  "re2.max_program_size.error_level": "32768",
  "envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst": true,
  "envoy.reloadable_features.http_reject_path_with_fragment": false,
  "envoy.reloadable_features.fixed_heap_use_allocated": true,
  "envoy.reloadable_features.coalesce_lb_rebuilds_on_batch_update": false,
};

const CONNECTION_LIMIT = "ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS";
const RUNTIME_CONNECTION_LIMIT = "overload.global_downstream_max_connections";
const UNLIMITED = 2 ** 31 - 1;

/** Entries of node metadata that are looked at: proxies that differ elsewhere share a bootstrap. */
const METADATA = [
  "INSTANCE_IPS",
  "ANNOTATIONS",
  "ADMIN_PORT",
  "STATUS_PORT",
  "ENVOY_STATUS_PORT",
  "ENVOY_PROMETHEUS_PORT",
  "ENVOY_SECURE_METRICS_PORT",
  "ENVOY_SECURE_MERGED_METRICS_PORT",
  "EXIT_ON_ZERO_ACTIVE_CONNECTIONS",
  "OUTLIER_LOG_PATH",
  "STANDARD_METRICS",
  "DUAL_STACK",
  "STATUS_PORT_PROXY_PROTOCOL",
  "COMPLIANCE_POLICY",
  "LOAD_STATS_CONFIG_JSON",
  "ENABLE_SELF_DISCOVERY",
  "TLS_CLIENT_CERT_CHAIN",
  "TLS_CLIENT_KEY",
  "TLS_CLIENT_ROOT_CERT",
] as const;
/** Those that differ between workloads, or machines, and count for few. */
const METADATA_OF_WORKLOADS = ["LABELS", "WORKLOAD_NAME", "NAMESPACE"] as const;
const METADATA_OF_MACHINES = ["HOST_IP"] as const;

/** The entries that count with a ProxyConfig. */
export function bootstrapMetadata(config: ProxyConfig | undefined): readonly string[] {
  const tracer = config?.tracing?.tracer;
  const addresses = [
    tracer?.case === "zipkin" || tracer?.case === "datadog" ? tracer.value.address : "",
    config?.statsdUdpAddress,
    config?.envoyMetricsService?.address,
    config?.envoyAccessLogService?.address,
  ];
  return [
    ...METADATA,
    ...(tracer?.case === "datadog" ? METADATA_OF_WORKLOADS : []),
    ...(addresses.some((address) => address?.includes(HOST_IP)) ? METADATA_OF_MACHINES : []),
  ];
}

/** What of a proxy decides its bootstrap: its ProxyConfig and what its agent says in node metadata (as in Istio's own agent). */
export function bootstrapInput(config: ProxyConfig | undefined, metadata: JsonObject, dualStack = false): ManagedBootstrapInput {
  const addresses = text(metadata.INSTANCE_IPS)
    .split(",")
    .filter((address) => address !== "");
  const annotations = object(metadata.ANNOTATIONS);
  const flushMs = flushMsOf(text(annotations["sidecar.istio.io/statsFlushInterval"]));
  return {
    adminPort: port(metadata.ADMIN_PORT) ?? portOr(config?.proxyAdminPort, 15_000),
    statusPort: port(metadata.STATUS_PORT) ?? portOr(config?.statusPort, 15_020),
    readinessPort: port(metadata.ENVOY_STATUS_PORT) ?? 0,
    prometheusPort: port(metadata.ENVOY_PROMETHEUS_PORT) ?? 0,
    secureMetricsPort: port(metadata.ENVOY_SECURE_METRICS_PORT) ?? 0,
    secureMergedMetricsPort: port(metadata.ENVOY_SECURE_MERGED_METRICS_PORT) ?? 0,
    families: familiesOf(addresses, dualStack || isOn(text(metadata.DUAL_STACK))),
    metricsLocally: config?.proxyMetadata.METRICS_LOCALHOST_ACCESS_ONLY === "true",
    readinessProxyProtocol: isOn(text(metadata.STATUS_PORT_PROXY_PROTOCOL)),
    stats: statsInput(config, { annotations, addresses, drains: text(metadata.EXIT_ON_ZERO_ACTIVE_CONNECTIONS) === "true" }),
    statsCompression: config?.statsCompression ?? true,
    statsFlushMs: flushMs,
    statsEvictionMs: evictionMs(
      text(annotations["sidecar.istio.io/statsEvictionInterval"]),
      text(metadata.STANDARD_METRICS) === "true",
      flushMs,
    ),
    runtime: { ...(text(metadata.COMPLIANCE_POLICY) === FIPS && FIPS_RUNTIME), ...runtimeOf(config) },
    maxConnections: connectionLimit(config),
    outlierLogPath: text(metadata.OUTLIER_LOG_PATH),
    loadStats: loadStatsOf(text(metadata.LOAD_STATS_CONFIG_JSON)),
    selfDiscovery: isOn(text(metadata.ENABLE_SELF_DISCOVERY)),
    services: remoteServicesOf(config, serviceFacts(config, metadata)),
    runProxyConfig: runProxyConfig(config),
  };
}

/** With addresses of both families the workload is reached by IPv4, unless it is to be by both. */
function familiesOf(addresses: readonly string[], dualStack: boolean): AddressFamilies {
  const found = [...new Set(addresses.map((address): 4 | 6 => (address.includes(":") ? 6 : 4)))];
  const [first = 4, ...others] = found;
  return others.length === 0 ? [first] : dualStack ? [first, ...others] : [4];
}

const FIPS = "fips-140-2";
const FIPS_RUNTIME: JsonObject = { "envoy.reloadable_features.google_grpc_disable_tls_13": true };

/** Envoy does not start with one that names nobody to tell. */
function loadStatsOf(json: string): ManagedBootstrapInput["loadStats"] {
  if (json === "") return undefined;
  try {
    const config = fromJson(ApiConfigSourceSchema, JSON.parse(json) as JsonValue);
    return config.grpcServices.length === 0 ? undefined : config;
  } catch {
    return undefined;
  }
}

function serviceFacts(config: ProxyConfig | undefined, metadata: JsonObject): ServiceFacts {
  const rule = { serviceCluster: "", tracingServiceName: "", otherwise: "", ...nameRule(config?.clusterName ?? { case: undefined }) };
  return {
    hostIp: text(metadata.HOST_IP),
    serviceName: serviceCluster(rule, metadata),
    files: {
      certificate: text(metadata.TLS_CLIENT_CERT_CHAIN),
      key: text(metadata.TLS_CLIENT_KEY),
      roots: text(metadata.TLS_CLIENT_ROOT_CERT),
    },
  };
}

/** What of ProxyConfig becomes flags of Envoy's command line or its name, or is the agent's to do when it ends; nothing where an agent would do so anyway. */
function runProxyConfig(config: ProxyConfig | undefined): string {
  if (config === undefined) return "";
  const { concurrency, drainDuration, terminationDrainDuration, fileFlushInterval, fileFlushMinSizeKb } = config;
  const said = {
    ...(concurrency !== undefined && { concurrency }),
    ...(drainDuration !== undefined && msOfDuration(drainDuration) !== 45_000 && { drainDuration: `${msOfDuration(drainDuration)}ms` }),
    ...(terminationDrainDuration !== undefined &&
      msOfDuration(terminationDrainDuration) !== 5_000 && { terminationDrainDuration: `${msOfDuration(terminationDrainDuration)}ms` }),
    ...(fileFlushInterval !== undefined && { fileFlushInterval: `${msOfDuration(fileFlushInterval)}ms` }),
    ...(fileFlushMinSizeKb > 0 && { fileFlushMinSizeKb }),
    ...nameRule(config.clusterName),
  };
  return Object.keys(said).length === 0 ? "" : JSON.stringify(said);
}

/** The name in traces, or how it is found; the default of both is what an agent does anyway. */
function nameRule({ case: kind, value }: ProxyConfig["clusterName"]): {
  readonly serviceCluster?: string;
  readonly tracingServiceName?: string;
} {
  if (kind === "serviceCluster" && value !== "istio-proxy") return { serviceCluster: value };
  if (kind === "tracingServiceName" && value !== TracingServiceName.APP_LABEL_AND_NAMESPACE)
    return { tracingServiceName: TracingServiceName[value] };
  return {};
}

/** Longer than any sensible time between two looks at metrics: what was counted last has been seen before it goes. */
const DEFAULT_EVICTION_MS = 600_000;
const ENVOYS_FLUSH_MS = 5_000;

/** Envoy does not start with a time between two flushes below a millisecond, nor with five minutes: then its own holds. */
function flushMsOf(asked: string): number | undefined {
  const given = parseGoDuration(asked);
  const ms = given === undefined ? 0 : msOfDuration(given);
  return ms >= 1 && ms < 300_000 ? ms : undefined;
}

/** Where somebody adds up what is dropped (an agent, which counts for ever). Envoy demands a multiple of the time between two flushes. */
function evictionMs(asked: string, standardMetrics: boolean, flushMs: number = ENVOYS_FLUSH_MS): number | undefined {
  const given = parseGoDuration(asked);
  if (given === undefined && !standardMetrics) return undefined;
  const wanted = given === undefined ? DEFAULT_EVICTION_MS : msOfDuration(given);
  return Math.max(1, Math.ceil(wanted / flushMs)) * flushMs;
}

interface StatsFacts {
  readonly annotations: JsonObject;
  readonly addresses: readonly string[];
  readonly drains: boolean;
}

function statsInput(config: ProxyConfig | undefined, { annotations, addresses, drains }: StatsFacts): StatsInput {
  const annotation = (name: string): string => text(annotations[`sidecar.istio.io/${name}`]);
  const matcher = config?.proxyStatsMatcher;
  const kept = (name: string, configured: readonly string[] | undefined, always: readonly string[]): readonly string[] => {
    const asked = annotation(name) === "" ? (configured ?? []) : annotation(name).split(",");
    return [...asked, ...always]
      .filter((one) => one !== "")
      .flatMap((one) => (one.includes("{pod_ip}") ? addresses.map((address) => one.replaceAll("{pod_ip}", address)) : [one]));
  };
  return {
    tags: [...new Set([...(config?.extraStatTags ?? []), ...annotation("extraStatTags").split(",")])].filter((tag) => tag !== ""),
    prefixes: kept("statsInclusionPrefixes", matcher?.inclusionPrefixes, ALWAYS.prefixes),
    suffixes: kept("statsInclusionSuffixes", matcher?.inclusionSuffixes, [...ALWAYS.suffixes, ...(drains ? [DRAINING_SUFFIX] : [])]),
    // Envoy does not start with an expression that is none.
    regexps: kept("statsInclusionRegexps", matcher?.inclusionRegexps, ALWAYS.regexps).filter((one) => syntaxFault(one) === undefined),
    buckets: buckets(annotation("statsHistogramBuckets")),
  };
}

/** JSON: beginnings of names to lists of limits. */
function buckets(json: string): StatsInput["buckets"] {
  try {
    const value = object(JSON.parse(json === "" ? "{}" : json) as JsonValue);
    return Object.entries(value)
      .flatMap(([prefix, limits]) =>
        Array.isArray(limits) && limits.every((limit) => typeof limit === "number") ? [{ prefix, limits }] : [],
      )
      .sort((a, b) => (a.prefix < b.prefix ? -1 : 1));
  } catch {
    return [];
  }
}

/** `runtimeValues` of ProxyConfig over the defaults; an empty value takes a default away, and texts that are numbers or flags are those. */
function runtimeOf(config: ProxyConfig | undefined): JsonObject {
  const values: Record<string, JsonValue> = { ...RUNTIME };
  for (const [name, value] of Object.entries(config?.runtimeValues ?? {})) {
    if (name === RUNTIME_CONNECTION_LIMIT) continue;
    if (value === "") delete values[name];
    else values[name] = value === "true" ? true : value === "false" ? false : value;
  }
  return values;
}

function connectionLimit(config: ProxyConfig | undefined): number {
  const configured = config?.connectionSettings?.globalDownstreamConnectionLimit ?? 0;
  if (configured > 0) return configured;
  const given = config?.proxyMetadata[CONNECTION_LIMIT] ?? config?.runtimeValues[RUNTIME_CONNECTION_LIMIT] ?? "";
  return /^\d{1,9}$/.test(given) ? Number(given) : UNLIMITED;
}

const text = (value: JsonValue | undefined): string => (typeof value === "string" ? value : typeof value === "number" ? String(value) : "");

function port(value: JsonValue | undefined): number | undefined {
  const number = Number(text(value) || "x");
  return Number.isInteger(number) && number >= 0 && number <= 65_535 ? number : undefined;
}

/** Proxies may bring settings of their own, which nobody has judged. */
const portOr = (given: number | undefined, otherwise: number): number =>
  given !== undefined && portFault(given) === undefined ? given : otherwise;

const object = (value: JsonValue | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
