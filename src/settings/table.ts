/**
 * Every environment variable the programs honour, declared once: the frozen `Settings` value, its documentation and its part of the
 * JSON Schema all come from here. Names, types and defaults are Istio's where Istio has the variable; `own` marks the few that are ours.
 */
export const SETTINGS = {
  home: {
    env: "ISTIO_HOME",
    type: "string",
    default: "",
    restart: true,
    own: true,
    about: "Base directory; empty means the working directory. Cannot be set in mesh.yaml, which is found through it.",
  },
  podName: { env: "POD_NAME", type: "string", default: "", restart: true, about: "Name of this control plane instance." },
  podNamespace: {
    env: "POD_NAMESPACE",
    type: "string",
    default: "istio-system",
    restart: true,
    about: "Namespace the control plane belongs to.",
  },
  clusterId: { env: "CLUSTER_ID", type: "string", default: "Kubernetes", restart: true, about: "Name of the cluster that objects read here belong to." },
  revision: { env: "REVISION", type: "string", default: "", restart: true, about: "Revision of this control plane; empty is the default revision." },
  trustDomain: { env: "TRUST_DOMAIN", type: "string", default: "", about: "SPIFFE trust domain; where set it wins over `trustDomain` of mesh.yaml." },

  grpcAddr: {
    env: "GRPC_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where xDS is served in plaintext; wins over `listen.grpcAddr`. Empty turns it off.",
  },
  secureGrpcAddr: {
    env: "SECURE_GRPC_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where xDS, CA, SDS and MCP are served over TLS; wins over `listen.secureGrpcAddr`. Empty turns it off.",
  },
  httpsAddr: {
    env: "HTTPS_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where the webhooks are served; wins over `listen.httpsAddr`. Empty turns it off.",
  },
  httpAddr: {
    env: "HTTP_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where readiness, debug pages and the dashboard are served; wins over `listen.httpAddr`. Empty turns it off.",
  },
  monitoringAddr: {
    env: "MONITORING_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where metrics and the version are served; wins over `listen.monitoringAddr`. Empty turns it off.",
  },

  debounceAfterMs: { env: "PILOT_DEBOUNCE_AFTER", type: "duration", default: "100ms", about: "How long configuration must be quiet before changes are pushed." },
  debounceMaxMs: { env: "PILOT_DEBOUNCE_MAX", type: "duration", default: "10s", about: "Longest time a change may wait for quiet." },
  debounceEndpoints: {
    env: "PILOT_ENABLE_EDS_DEBOUNCE",
    type: "bool",
    default: "true",
    about: "Whether endpoint changes wait for quiet too, or are pushed at once.",
  },
  pushThrottle: { env: "PILOT_PUSH_THROTTLE", type: "int", default: "0", about: "Streams that may be sent to at the same time; 0 leaves it to the process." },
  maxRequestsPerSecond: {
    env: "PILOT_MAX_REQUESTS_PER_SECOND",
    type: "float",
    default: "0",
    about: "New xDS streams accepted per second; 0 leaves it to the process.",
  },
  keepaliveIntervalMs: {
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
  maxReceiveBytes: {
    env: "ISTIO_GPRC_MAXRECVMSGSIZE",
    type: "int",
    default: "4194304",
    restart: true,
    about: "Largest gRPC message accepted from a client, in bytes.",
  },
  maxStreams: { env: "ISTIO_GPRC_MAXSTREAMS", type: "int", default: "100000", restart: true, about: "Streams one gRPC connection may open." },

  edsForHeadless: {
    env: "PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES",
    type: "bool",
    default: "false",
    about: "Balance headless services over their endpoints instead of going to the address the client chose.",
  },
  sidecarUseRemoteAddress: {
    env: "PILOT_SIDECAR_USE_REMOTE_ADDRESS",
    type: "bool",
    default: "false",
    about: "Sidecars take the peer's address as the client's on outbound HTTP listeners.",
  },
  http10: { env: "PILOT_HTTP10", type: "bool", default: "false", about: "Accept HTTP/1.0 requests on outbound HTTP listeners." },
  absoluteFqdnDomains: {
    env: "PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN",
    type: "bool",
    default: "true",
    about: "Virtual hosts also answer to the host name with a trailing dot.",
  },
  scopeGatewayToNamespace: {
    env: "PILOT_SCOPE_GATEWAY_TO_NAMESPACE",
    type: "bool",
    default: "false",
    about: "A gateway proxy serves only Gateways of its own namespace.",
  },
  autoAllocateAddresses: {
    env: "PILOT_ENABLE_IP_AUTOALLOCATE",
    type: "bool",
    default: "true",
    about: "Give ServiceEntries without addresses a virtual one.",
  },
  autoAllocateIpv4: {
    env: "PILOT_IP_AUTOALLOCATE_IPV4_PREFIX",
    type: "string",
    default: "240.240.0.0/16",
    about: "IPv4 range of the virtual addresses.",
  },
  autoAllocateIpv6: {
    env: "PILOT_IP_AUTOALLOCATE_IPV6_PREFIX",
    type: "string",
    default: "2001:2::/48",
    about: "IPv6 range of the virtual addresses.",
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
  logJson: { env: "ISTIO_LOG_AS_JSON", type: "bool", default: "false", restart: true, own: true, about: "Log JSON records instead of text lines." },
} as const satisfies Record<string, SettingDef>;

/** How one variable is read. `default` is written as a user would write it. */
export interface SettingDef {
  readonly env: string;
  readonly type: SettingType;
  /** `undefined`: absence means something of its own. */
  readonly default: string | undefined;
  readonly choices?: readonly string[];
  /** A change in `mesh.yaml: env` takes effect only at the next start. */
  readonly restart?: true;
  /** The variable is not one of Istio's. */
  readonly own?: true;
  readonly about: string;
}

export type SettingType = "string" | "bool" | "int" | "float" | "duration" | "address" | "choice";

/** Value of each type: durations are milliseconds; addresses stay text, read by `parseHostPort`. */
interface SettingValue {
  readonly string: string;
  readonly bool: boolean;
  readonly int: number;
  readonly float: number;
  readonly duration: number;
  readonly address: string;
  readonly choice: string;
}

/** All settings as one value: read once from the process, passed to whoever needs a few of them, never global. */
export type Settings = {
  readonly [K in keyof typeof SETTINGS]: (typeof SETTINGS)[K] extends { choices: readonly (infer C)[] }
    ? C
    : SettingValue[(typeof SETTINGS)[K]["type"]] | ((typeof SETTINGS)[K]["default"] extends undefined ? undefined : never);
};

export type SettingKey = keyof Settings;
