import { clone, create, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type MeshConfig,
  type MeshConfig_ExtensionProvider,
  MeshConfig_ExtensionProviderSchema,
  MeshConfig_InboundTrafficPolicy_Mode,
  MeshConfig_IngressControllerMode,
  MeshConfig_OutboundTrafficPolicy_Mode,
  MeshConfigSchema,
} from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type ProxyConfig, ProxyConfigSchema } from "../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { AuthenticationPolicy } from "../../gen/istio/mesh/v1alpha1/shared_pb.js";

/** ProxyConfig as Istio has it where a mesh says nothing. */
export function defaultProxyConfig(): ProxyConfig {
  return create(ProxyConfigSchema, {
    configPath: "./etc/istio/proxy",
    binaryPath: "/usr/local/bin/envoy",
    clusterName: { case: "serviceCluster", value: "istio-proxy" },
    drainDuration: durationFromMs(45_000),
    terminationDrainDuration: durationFromMs(5_000),
    discoveryAddress: "istiod.istio-system.svc:15012",
    controlPlaneAuthPolicy: AuthenticationPolicy.MUTUAL_TLS,
    proxyAdminPort: 15000,
    statNameLength: 189,
    statusPort: 15020,
  });
}

/** MeshConfig as Istio has it where a mesh says nothing. */
export function defaultMeshConfig(): MeshConfig {
  return create(MeshConfigSchema, {
    proxyListenPort: 15001,
    proxyInboundListenPort: 15006,
    connectTimeout: durationFromMs(10_000),
    protocolDetectionTimeout: durationFromMs(0),
    dnsRefreshRate: durationFromMs(60_000),
    trustDomain: "cluster.local",
    rootNamespace: "istio-system",
    enableAutoMtls: true,
    enableTracing: true,
    enablePrometheusMerge: true,
    ingressClass: "istio",
    ingressService: "istio-ingressgateway",
    ingressControllerMode: MeshConfig_IngressControllerMode.STRICT,
    outboundTrafficPolicy: { mode: MeshConfig_OutboundTrafficPolicy_Mode.ALLOW_ANY },
    inboundTrafficPolicy: { mode: MeshConfig_InboundTrafficPolicy_Mode.PASSTHROUGH },
    localityLbSetting: { enabled: true },
    defaultServiceExportTo: ["*"],
    defaultVirtualServiceExportTo: ["*"],
    defaultDestinationRuleExportTo: ["*"],
    defaultConfig: defaultProxyConfig(),
    defaultProviders: {},
    extensionProviders: [
      { name: "prometheus", provider: { case: "prometheus", value: {} } },
      { name: "stackdriver", provider: { case: "stackdriver", value: {} } },
      { name: "envoy", provider: { case: "envoyFileAccessLog", value: { path: "/dev/stdout" } } },
    ],
  });
}

/** What a user wrote: the message, and which fields of it were written at all (`false` and unset look alike in the message). */
export interface Written<T> {
  readonly message: T;
  /** JSON-shaped text it was read from, under canonical field names. */
  readonly json: Readonly<Record<string, unknown>>;
}

/**
 * Puts what a user wrote over Istio's defaults, by Istio's rules: a field that is written replaces its default whole (an empty
 * `outboundTrafficPolicy` is not ALLOW_ANY any more), but `defaultConfig` and `defaultProviders` are filled up field by field,
 * extension providers are replaced by name, and trust domain aliases are a sorted set without the trust domain.
 */
export function withMeshDefaults(user: Written<MeshConfig>): MeshConfig {
  const defaults = defaultMeshConfig();
  const result = overlay(MeshConfigSchema, defaults, user);
  if (user.message.defaultConfig !== undefined) {
    result.defaultConfig = withProxyDefaults(defaults.defaultConfig, {
      message: user.message.defaultConfig,
      json: recordOf(user.json.defaultConfig),
    });
  } else if (defaults.defaultConfig !== undefined) result.defaultConfig = defaults.defaultConfig;
  result.extensionProviders = replaceByName(defaults.extensionProviders, user.message.extensionProviders);
  result.trustDomainAliases = [...new Set(user.message.trustDomainAliases)].filter((alias) => alias !== result.trustDomain).sort();
  return result;
}

/**
 * Puts a written ProxyConfig (of mesh.yaml, an annotation or node metadata) over another one, as Istio does: field by field, with
 * `proxyMetadata` joined by key, and the parts of `proxyHeaders` that are not written kept.
 */
export function withProxyDefaults(base: ProxyConfig | undefined, user: Written<ProxyConfig>): ProxyConfig {
  const result = overlay(ProxyConfigSchema, base ?? defaultProxyConfig(), user);
  result.proxyMetadata = { ...base?.proxyMetadata, ...user.message.proxyMetadata };
  const headers = result.proxyHeaders;
  const before = base?.proxyHeaders;
  if (headers !== undefined && before !== undefined) {
    headers.forwardedClientCert ||= before.forwardedClientCert;
    for (const part of ["requestId", "attemptCount", "server", "envoyDebugHeaders"] as const) keepPart(headers, before, part);
  }
  return result;
}

function keepPart<T, K extends keyof T>(into: T, from: T, key: K): void {
  into[key] ??= from[key];
}

function overlay<D extends DescMessage>(schema: D, base: MessageShape<D>, user: Written<MessageShape<D>>): MessageShape<D> {
  const result = clone(schema, base);
  const into = reflect(schema, result, false);
  const from = reflect(schema, user.message, false);
  for (const field of schema.fields) {
    if (!isWritten(field, user.json)) continue;
    if (from.isSet(field)) into.set(field, from.get(field));
    else into.clear(field);
  }
  return result;
}

const isWritten = (field: DescField, json: Readonly<Record<string, unknown>>): boolean => (json[field.jsonName] ?? undefined) !== undefined;

function replaceByName(
  base: readonly MeshConfig_ExtensionProvider[],
  over: readonly MeshConfig_ExtensionProvider[],
): MeshConfig_ExtensionProvider[] {
  const result = base.map((provider) => clone(MeshConfig_ExtensionProviderSchema, provider));
  for (const provider of over) {
    const index = result.findIndex((other) => other.name === provider.name);
    if (index < 0) result.push(provider);
    else result[index] = provider;
  }
  return result;
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
