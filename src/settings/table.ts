import { KUBERNETES_SETTINGS } from "./kubernetes-table.ts";
import { LISTEN_SETTINGS } from "./listen-table.ts";
import { OVERLOAD_SETTINGS } from "./overload-table.ts";
import { POLICY_SETTINGS } from "./policy-table.ts";
import type { SettingDef, SettingsOf } from "./setting-def.ts";

/**
 * Every environment variable the programs honour, declared once: the frozen `Settings` value, its documentation and its part of the
 * JSON Schema all come from here. Names, types and defaults are Istio's where Istio has the variable; `own` marks those that today's Istio does not have.
 */
export const SETTINGS = {
  home: {
    env: "ISTIO_HOME",
    type: "string",
    default: "",
    restart: true,
    own: true,
    envOnly: true,
    about: "Base directory; empty means the working directory.",
  },
  podName: { env: "POD_NAME", type: "string", default: "", restart: true, about: "Name of this control plane instance." },
  podNamespace: {
    env: "POD_NAMESPACE",
    type: "string",
    default: "istio-system",
    restart: true,
    about: "Namespace of this control plane: its certificate is for `istiod.<namespace>.svc`.",
  },
  clusterId: {
    env: "CLUSTER_ID",
    type: "string",
    default: "Kubernetes",
    restart: true,
    about: "Name of the cluster that objects read here belong to.",
  },
  ...KUBERNETES_SETTINGS,
  trustDomain: {
    env: "TRUST_DOMAIN",
    type: "string",
    default: "",
    about: "SPIFFE trust domain; where set it wins over `trustDomain` of mesh.yaml.",
  },

  ...LISTEN_SETTINGS,

  customHosts: {
    env: "ISTIOD_CUSTOM_HOST",
    type: "string",
    default: "",
    restart: true,
    about: "Further host names, separated by commas, under which proxies reach this control plane: its certificate is for them too.",
  },
  workloadCertTtlMs: {
    env: "DEFAULT_WORKLOAD_CERT_TTL",
    type: "duration",
    default: "24h",
    restart: true,
    about: "How long certificates of workloads are valid where the workload does not ask.",
  },
  maxWorkloadCertTtlMs: {
    env: "MAX_WORKLOAD_CERT_TTL",
    type: "duration",
    default: "2160h",
    restart: true,
    about: "Longest time for which a certificate is given out; longer wishes are cut.",
  },
  rootCertTtlMs: {
    env: "CITADEL_SELF_SIGNED_CA_CERT_TTL",
    type: "duration",
    default: "87600h",
    restart: true,
    about: "How long a root that is made at the first start is valid.",
  },
  vaultRefreshMs: {
    env: "VAULT_REFRESH_INTERVAL",
    type: "duration",
    default: "30s",
    restart: true,
    own: true,
    about: "How often credentials are asked of Vault again (`vault` in mesh.yaml).",
  },
  trustedNodeAccounts: {
    env: "CA_TRUSTED_NODE_ACCOUNTS",
    type: "string",
    default: "",
    restart: true,
    about:
      "Accounts (`namespace/name`, separated by commas) of agents of nodes: one may ask for certificates of workloads whose pods are on the node of its own.",
  },
  trustedControlPlanes: {
    env: "CA_TRUSTED_CONTROL_PLANES",
    type: "string",
    default: "",
    restart: true,
    own: true,
    about:
      "Accounts (`namespace/name`, separated by commas) of control planes that leave their signing to this one: they may ask for every identity of their trust domain.",
  },
  autoRegistration: {
    env: "PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION",
    type: "bool",
    default: "true",
    restart: true,
    about: "Workloads that name a WorkloadGroup when they connect get a WorkloadEntry.",
  },
  workloadHealthChecks: {
    env: "PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS",
    type: "bool",
    default: "true",
    restart: true,
    about: "What agents report of their workload's health counts for its WorkloadEntry.",
  },
  workloadEntryGraceMs: {
    env: "PILOT_WORKLOAD_ENTRY_GRACE_PERIOD",
    type: "duration",
    default: "10s",
    restart: true,
    about: "How long a workload that registered itself may be away before its WorkloadEntry is removed.",
  },

  debounceAfterMs: {
    env: "PILOT_DEBOUNCE_AFTER",
    type: "duration",
    default: "100ms",
    restart: true,
    about: "How long configuration must be quiet before changes are pushed.",
  },
  debounceMaxMs: {
    env: "PILOT_DEBOUNCE_MAX",
    type: "duration",
    default: "10s",
    restart: true,
    about:
      "Longest time a change may wait for quiet. Where pushes are quick it waits for less: five times the quiet time, or three times what the last push took.",
  },
  keepaliveMs: {
    env: "GRPC_KEEPALIVE_INTERVAL",
    type: "duration",
    default: "30s",
    restart: true,
    about: "How often an idle gRPC connection is probed.",
  },
  keepaliveTimeoutMs: {
    env: "GRPC_KEEPALIVE_TIMEOUT",
    type: "duration",
    default: "10s",
    restart: true,
    about: "How long a gRPC probe may stay unanswered.",
  },
  maxRequestBytes: {
    env: "ISTIO_GPRC_MAXRECVMSGSIZE",
    type: "int",
    default: "4194304",
    restart: true,
    about: "Largest gRPC message accepted from a client, in bytes.",
  },
  maxStreams: {
    env: "ISTIO_GPRC_MAXSTREAMS",
    type: "int",
    default: "20000",
    restart: true,
    about: "Streams held at the same time, over all connections; Istio's default is 100000 on each.",
  },
  ...OVERLOAD_SETTINGS,

  clusterDomain: {
    env: "CLUSTER_DOMAIN",
    type: "string",
    default: "cluster.local",
    restart: true,
    own: true,
    about: "DNS suffix of Kubernetes Services; Istio has it as the flag --domain.",
  },
  edsForHeadless: {
    env: "PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES",
    type: "bool",
    default: "false",
    restart: true,
    about: "Balance headless services over their endpoints instead of going to the address the client chose.",
  },
  sniffOutbound: {
    env: "PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND",
    type: "bool",
    default: "true",
    restart: true,
    own: true,
    about: "Guess the protocol of outbound ports that declare none.",
  },
  sniffInbound: {
    env: "PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND",
    type: "bool",
    default: "true",
    restart: true,
    own: true,
    about: "Guess the protocol of inbound ports that declare none.",
  },
  defaultRequestTimeoutMs: {
    env: "ISTIO_DEFAULT_REQUEST_TIMEOUT",
    type: "duration",
    default: "0s",
    restart: true,
    own: true,
    about: "Timeout of HTTP requests whose route sets none; 0s means no timeout.",
  },
  http10: {
    env: "PILOT_HTTP10",
    type: "bool",
    default: "false",
    restart: true,
    about: "Serve clients that speak HTTP/1.0; node metadata HTTP10 says it for one proxy.",
  },
  resolveGateways: {
    env: "RESOLVE_HOSTNAME_GATEWAYS",
    type: "bool",
    default: "true",
    restart: true,
    about: "Resolve gateways of other networks that are given by host name; proxies are sent their addresses.",
  },
  envoyFilterStats: {
    env: "PILOT_ENVOY_FILTER_STATS",
    type: "bool",
    default: "false",
    restart: true,
    about: "Report in metric `pilot_envoy_filter_status` what EnvoyFilters do; it is worked out whenever metrics are read.",
  },
  mongoFilter: {
    env: "PILOT_ENABLE_MONGO_FILTER",
    type: "bool",
    default: "true",
    restart: true,
    about: "Decode what passes through ports of protocol MONGO, for Envoy's statistics.",
  },
  redisFilter: {
    env: "PILOT_ENABLE_REDIS_FILTER",
    type: "bool",
    default: "false",
    restart: true,
    about: "Speak Redis on ports of protocol REDIS: commands are spread over the endpoints by their keys.",
  },
  persistentSessions: {
    env: "PILOT_ENABLE_PERSISTENT_SESSION_FILTER",
    type: "bool",
    default: "false",
    restart: true,
    about: "Keep the sessions of services that are labelled for it: requests find back to the endpoint that answered the first.",
  },
  sessionLabel: {
    env: "PILOT_PERSISTENT_SESSION_LABEL",
    type: "string",
    default: "istio.io/persistent-session",
    restart: true,
    about: "Label of services whose sessions a cookie keeps: `name` or `name:/path`. Empty switches it off.",
  },
  sessionHeaderLabel: {
    env: "PILOT_PERSISTENT_SESSION_HEADER_LABEL",
    type: "string",
    default: "istio.io/persistent-session-header",
    restart: true,
    about: "Label of services whose sessions a header keeps, with the header's name. Empty switches it off.",
  },
  drainingLabel: {
    env: "PILOT_DRAINING_LABEL",
    type: "string",
    default: "istio.io/draining",
    restart: true,
    about: "Label of workloads that take no new sessions; they are sent for services with sessions only. Empty switches it off.",
  },
  quicListeners: {
    env: "PILOT_ENABLE_QUIC_LISTENERS",
    type: "bool",
    default: "false",
    restart: true,
    about: "Serve HTTP/3 beside HTTPS on gateways whose Service opens the same port for UDP.",
  },
  dualStack: {
    env: "ISTIO_DUAL_STACK",
    type: "bool",
    default: "false",
    restart: true,
    about: "Use the addresses of both families of proxies, services and endpoints that have both; otherwise IPv4 is used.",
  },
  tlsOnSidecarIngress: {
    env: "ENABLE_TLS_ON_SIDECAR_INGRESS",
    type: "bool",
    default: "false",
    restart: true,
    about: "Let `tls` of a Sidecar's ingress listener take effect, where mutual TLS is disabled for the port.",
  },
  traceSampling: {
    env: "PILOT_TRACE_SAMPLING",
    type: "float",
    default: "1.0",
    restart: true,
    about: "Percentage of requests traced where neither Telemetry nor ProxyConfig says how many.",
  },
  severalAuthorizers: {
    env: "PILOT_ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS",
    type: "bool",
    default: "false",
    restart: true,
    about: "Let CUSTOM policies of one workload name several providers; otherwise what they apply to is denied.",
  },
  ...POLICY_SETTINGS,
  autoAllocateAddresses: {
    env: "PILOT_ENABLE_IP_AUTOALLOCATE",
    type: "bool",
    default: "true",
    restart: true,
    about: "Give ServiceEntries without addresses a virtual one.",
  },
  autoAllocateIpv4: {
    env: "PILOT_IP_AUTOALLOCATE_IPV4_PREFIX",
    type: "range",
    default: "240.240.0.0/16",
    restart: true,
    about: "IPv4 range of the virtual addresses.",
  },
  autoAllocateIpv6: {
    env: "PILOT_IP_AUTOALLOCATE_IPV6_PREFIX",
    type: "range",
    default: "2001:2::/48",
    restart: true,
    about: "IPv6 range of the virtual addresses.",
  },

  maxConfigFileBytes: {
    env: "ISTIO_MAX_CONFIG_FILE_BYTES",
    type: "int",
    default: "16777216",
    restart: true,
    own: true,
    about: "Largest configuration file that is read, in bytes.",
  },

  envoyPath: {
    env: "ENVOY_PATH",
    type: "string",
    default: "",
    restart: true,
    own: true,
    envOnly: true,
    about: "Envoy binary for what runs Envoy; empty looks in PATH, then where the set-up puts it.",
  },
  logLevel: {
    env: "ISTIO_LOG_LEVEL",
    type: "choice",
    choices: ["debug", "info", "warn", "error"],
    default: "info",
    restart: true,
    own: true,
    about: "Least level that is logged.",
  },
  logJson: {
    env: "ISTIO_LOG_AS_JSON",
    type: "bool",
    default: "false",
    restart: true,
    own: true,
    about: "Log JSON records instead of text lines.",
  },
} as const satisfies Record<string, SettingDef>;

/** All settings as one value: read once from the process, passed to whoever needs a few of them, never global. */
export type Settings = SettingsOf<typeof SETTINGS>;

/** Name of a setting in the code. */
export type SettingKey = keyof Settings;
