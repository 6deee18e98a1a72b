import { PROXY_SETTINGS } from "./proxy-table.ts";
import type { SettingDef, SettingsOf } from "./setting-def.ts";

/**
 * Every environment variable of the agent, besides `ISTIO_META_*` and `ISTIO_METAJSON_*`, which become node metadata. The same may stand in
 * `var/lib/istio/envoy/sidecar.env`; the real environment wins.
 */
export const AGENT_SETTINGS = {
  home: {
    env: "ISTIO_HOME",
    type: "string",
    default: "",
    own: true,
    about: "Base directory; empty means the working directory.",
  },
  istioAddress: {
    env: "ISTIO_ADDRESS",
    type: "string",
    default: "",
    own: true,
    about:
      "Where istiod is: `host:port`, several separated by commas. A bare name means `name.svc:15012` in a pod, `name:15012` elsewhere. Port 443 means roots of the platform, 15010 plaintext. Empty (and no other address, no token and no bundle of a machine): a control plane of its own on local files.",
  },
  pilotAddress: { env: "PILOT_ADDRESS", type: "string", default: "", own: true, about: "The same for xDS alone; wins over ISTIO_ADDRESS." },
  caAddress: {
    env: "CA_ADDR",
    type: "string",
    default: "",
    about: "Where certificates are signed, if not by the istiod that serves xDS.",
  },
  istiodSan: {
    env: "ISTIOD_SAN",
    type: "string",
    default: "",
    about:
      "Name that istiod's certificate must be for; else the host that is called, or `istiod.istio-system.svc` where that is an IP address.",
  },
  xdsRoots: {
    env: "XDS_ROOT_CA",
    type: "string",
    default: "",
    about: "File with the roots that istiod is verified with; `SYSTEM` means those of the platform.",
  },
  caRoots: {
    env: "CA_ROOT_CA",
    type: "string",
    default: "",
    about: "File with the roots that the CA is verified with; `SYSTEM` means those of the platform.",
  },
  certProvider: {
    env: "PILOT_CERT_PROVIDER",
    type: "string",
    default: "istiod",
    about: "Who signs istiod's certificate. Istio's injection sets it; the agent finds the roots by where they lie, and needs no answer.",
  },
  proxyConfig: {
    env: "PROXY_CONFIG",
    type: "string",
    default: "",
    about: "ProxyConfig of this workload (YAML or JSON): ports, drain times, statistics and so on.",
  },
  meshConfig: {
    env: "PROXY_MESH_CONFIG",
    type: "string",
    default: "etc/istio/config/mesh",
    own: true,
    about:
      "File with a MeshConfig, of a bundle for machines for instance: its `defaultConfig` counts below PROXY_CONFIG. Istio has it as the flag --meshConfig.",
  },
  podName: { env: "POD_NAME", type: "string", default: "", about: "Name of the workload; else the machine's." },
  podNamespace: { env: "POD_NAMESPACE", type: "string", default: "default", about: "Namespace of the workload." },
  domain: {
    env: "PROXY_DOMAIN",
    type: "string",
    default: "",
    own: true,
    about:
      "Domain that short names of the workload are in: its namespace, `svc` and the domain of the cluster; else with `cluster.local`. Istio has it as the flag --domain.",
  },
  instanceIp: {
    env: "INSTANCE_IP",
    alias: "ISTIO_SVC_IP",
    type: "string",
    default: "",
    about:
      "Address that others know the workload by; further ones of the machine follow it. Else ISTIO_SVC_IP, which bundles for machines have, else the first of the machine.",
  },
  groupNamespace: {
    env: "ISTIO_NAMESPACE",
    type: "string",
    default: "",
    about: "In bundles for machines: the namespace of the group. The agent goes by POD_NAMESPACE, which stands there too.",
  },
  groupService: {
    env: "ISTIO_SERVICE",
    type: "string",
    default: "",
    about: "In bundles for machines: name and namespace of the group. The agent needs neither.",
  },
  serviceAccount: { env: "SERVICE_ACCOUNT", type: "string", default: "default", about: "Service account of the workload." },
  trustDomain: { env: "TRUST_DOMAIN", type: "string", default: "cluster.local", about: "Trust domain asked for in certificate requests." },
  clusterId: {
    env: "CLUSTER_ID",
    type: "string",
    default: "Kubernetes",
    about: "Cluster the workload belongs to; ISTIO_META_CLUSTER_ID wins.",
  },
  secretTtlMs: { env: "SECRET_TTL", type: "duration", default: "24h", about: "How long a certificate is asked to be valid." },
  renewAt: {
    env: "SECRET_GRACE_PERIOD_RATIO",
    type: "float",
    default: "0.5",
    about: "Share of a certificate's life that is left when it is renewed.",
  },
  renewJitter: {
    env: "SECRET_GRACE_PERIOD_RATIO_JITTER",
    type: "float",
    default: "0.01",
    about: "How far that share may be moved at random, so that many workloads do not renew at the same moment.",
  },
  outputCerts: {
    env: "OUTPUT_CERTS",
    type: "string",
    default: "",
    about:
      "Directory to keep copies of certificate, key and roots in (`etc/certs`, which is the default with a `var/lib/istio/envoy/cluster.env`); empty means none.",
  },
  fileMountedCerts: {
    env: "FILE_MOUNTED_CERTS",
    type: "bool",
    default: "false",
    about:
      "The workload's certificate comes from files that others keep fresh (`cert-chain.pem`, `key.pem`, `root-cert.pem` in `etc/certs`), and no CA is asked.",
  },
  provisionedCerts: {
    env: "PROV_CERT",
    type: "string",
    default: "",
    about: "Directory with such files that are shown to istiod and CA before there is a certificate of the CA's; Envoy never gets them.",
  },
  eccAlgorithm: {
    env: "ECC_SIGNATURE_ALGORITHM",
    type: "choice",
    choices: ["ECDSA"],
    default: undefined,
    about: "ECDSA asks for elliptic-curve keys, which workloads have here anyway unless WORKLOAD_RSA_KEY_SIZE says otherwise.",
  },
  eccCurve: { env: "ECC_CURVE", type: "choice", choices: ["P256", "P384"], default: "P256", about: "Curve of such keys." },
  rsaBits: {
    env: "WORKLOAD_RSA_KEY_SIZE",
    type: "int",
    default: undefined,
    about: "Size of the workload's RSA keys, 2048 to 8192. Where it is set and ECC_SIGNATURE_ALGORITHM is not, keys are RSA.",
  },
  pkcs8Keys: { env: "PKCS8_KEY", type: "bool", default: "true", about: "Accepted: keys are always written as PKCS#8." },
  identitySocket: {
    env: "WORKLOAD_IDENTITY_SOCKET_FILE",
    type: "string",
    default: "socket",
    about:
      "File name of the SDS socket under `var/run/secrets/workload-spiffe-uds`. If somebody (SPIRE) serves there already, that is used; one of another name than the default must be served.",
  },
  envoyStatusPort: {
    env: "ENVOY_STATUS_PORT",
    type: "port",
    default: "15021",
    about: "Port of Envoy's readiness listener; 0 leaves it out.",
  },
  envoyPrometheusPort: {
    env: "ENVOY_PROMETHEUS_PORT",
    type: "port",
    default: "15090",
    about: "Port of Envoy's own metrics; 0 leaves it out.",
  },
  secureMetricsPort: {
    env: "ENVOY_SECURE_METRICS_PORT",
    type: "port",
    default: "0",
    about: "Port of Envoy's own metrics for callers with a certificate of the mesh; 0 leaves it out.",
  },
  secureMergedMetricsPort: {
    env: "ENVOY_SECURE_MERGED_METRICS_PORT",
    type: "port",
    default: "0",
    about: "The same for the metrics of application, agent and Envoy together.",
  },
  dnsAddress: {
    env: "DNS_PROXY_ADDR",
    type: "string",
    default: "localhost:15053",
    about:
      "Where the agent answers for names, if ISTIO_META_DNS_CAPTURE (of a sidecar) or ISTIO_META_ENABLE_DNS_SERVER is true; `localhost` means loopback of both address families, and no host (`:53`) every address of the machine.",
  },
  dnsTimeoutMs: {
    env: "DNS_FORWARD_TIMEOUT",
    type: "duration",
    default: "2s",
    about: "How long one of the machine's name servers may take before the next is asked.",
  },
  dnsParallel: {
    env: "DNS_FORWARD_PARALLEL",
    type: "bool",
    default: "false",
    about: "Ask all of the machine's name servers at once and take the first answer.",
  },
  appProbers: {
    env: "ISTIO_KUBE_APP_PROBERS",
    type: "string",
    default: "",
    about:
      "Probes of the application that injection pointed at the agent, as JSON: path on the agent's port to `httpGet`, `tcpSocket` or `grpc`.",
  },
  probeLocalhost: {
    env: "REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION",
    type: "bool",
    default: "false",
    about: "Probe the application at localhost instead of the workload's address.",
  },
  prometheusAnnotations: {
    env: "ISTIO_PROMETHEUS_ANNOTATIONS",
    type: "string",
    default: "",
    about:
      "The application's own metrics, merged into the agent's: `scrape`, `port`, `path` or `targets` as JSON, which injection makes from `prometheus.io/*`.",
  },
  mergeEnvoyStats: {
    env: "PILOT_AGENT_MERGE_ENVOY_STATS",
    type: "bool",
    default: "true",
    about: "Envoy's metrics are on the agent's page too.",
  },
  metricsLocalOnly: {
    env: "METRICS_LOCALHOST_ACCESS_ONLY",
    type: "bool",
    default: "false",
    about: "Only programs on the same machine may ask the agent for metrics.",
  },
  wasmInsecureRegistries: {
    env: "WASM_INSECURE_REGISTRIES",
    type: "string",
    default: "",
    about:
      "Hosts, separated by commas (`localhost:5000`), from which Wasm modules are fetched although they have no good certificate, speak plain HTTP or are on this machine; `*` means all.",
  },
  wasmBlockedRanges: {
    env: "BLOCKED_CIDRS_IN_WASM_FETCH",
    type: "string",
    default: "",
    about:
      "Ranges of addresses, separated by commas, from which no Wasm modules are fetched, besides those of this machine, its links and metadata services.",
  },
  wasmExpiryMs: {
    env: "WASM_MODULE_EXPIRY",
    type: "duration",
    default: "24h",
    about: "How long a Wasm module that nobody uses is kept.",
  },
  wasmPurgeMs: { env: "WASM_PURGE_INTERVAL", type: "duration", default: "1h", about: "How often such modules are looked for." },
  wasmAttempts: {
    env: "WASM_HTTP_REQUEST_MAX_RETRIES",
    type: "int",
    default: "5",
    about: "How often the fetch of a Wasm module is tried at once; after that it is tried again now and then.",
  },
  wasmMostBytes: {
    env: "ISTIO_WASM_MAX_BINARY_SIZE_BYTES",
    type: "int",
    default: "268435456",
    about: "Largest Wasm module, packed or not, in bytes.",
  },
  ...PROXY_SETTINGS,
  dualStack: {
    env: "ISTIO_DUAL_STACK",
    type: "bool",
    default: "false",
    about: "Where the workload has addresses of both families, Envoy's listeners for readiness and metrics are on both.",
  },
  statusPortProxyProtocol: {
    env: "ENVOY_STATUS_PORT_ENABLE_PROXY_PROTOCOL",
    type: "bool",
    default: "false",
    about: "The readiness listener takes connections with a header of the PROXY protocol before them, too, as load balancers send it.",
  },
  compliancePolicy: {
    env: "COMPLIANCE_POLICY",
    type: "string",
    default: "",
    about: "`fips-140-2` keeps Envoy's own calls by Google's gRPC at TLS 1.2, too.",
  },
  skipDeprecatedLogs: {
    env: "ENVOY_SKIP_DEPRECATED_LOGS",
    type: "bool",
    default: "true",
    about: "Envoy does not log that something in its configuration is deprecated.",
  },
  disableEnvoy: { env: "DISABLE_ENVOY", type: "bool", default: "false", about: "Serve certificates and xDS, but run no Envoy." },
  grpcBootstrap: {
    env: "GRPC_XDS_BOOTSTRAP",
    type: "string",
    default: "etc/istio/proxy/grpc-bootstrap.json",
    about: "File to write for applications whose gRPC library speaks xDS itself: the agent's socket, the node, the copies of OUTPUT_CERTS.",
  },
  drainSeconds: {
    env: "TERMINATION_DRAIN_DURATION_SECONDS",
    type: "int",
    default: undefined,
    about: "How long Envoy is drained before it is ended; wins over `terminationDrainDuration` of ProxyConfig (5 s).",
  },
  exitOnZero: {
    env: "EXIT_ON_ZERO_ACTIVE_CONNECTIONS",
    type: "bool",
    default: "false",
    about: "Drain until no connection is active (asked after MINIMUM_DRAIN_DURATION, at most ten minutes) instead of a fixed time.",
  },
  minimumDrainMs: {
    env: "MINIMUM_DRAIN_DURATION",
    type: "duration",
    default: "5s",
    about: "Least time of draining with EXIT_ON_ZERO_ACTIVE_CONNECTIONS.",
  },
  bootstrapOverride: {
    env: "ISTIO_BOOTSTRAP_OVERRIDE",
    type: "string",
    default: "",
    about: "File with a bootstrap (YAML or JSON) that Envoy merges over the one it is given; `$(HOST_IP)` in it is the node's address.",
  },
  cpuLimit: { env: "ISTIO_CPU_LIMIT", type: "int", default: "0", about: "Threads of Envoy where ProxyConfig sets no `concurrency`." },
  concurrency: {
    env: "PROXY_CONCURRENCY",
    type: "int",
    default: "0",
    own: true,
    about: "Threads of Envoy, whatever ProxyConfig says; 0 leaves it to that. Istio has it as the flag --concurrency.",
  },
  serviceCluster: {
    env: "PROXY_SERVICE_CLUSTER",
    type: "string",
    default: "",
    own: true,
    about: "What the workload is called in traces where ProxyConfig has no name; Istio has it as the flag --serviceCluster.",
  },
  proxyLogLevel: {
    env: "PROXY_LOG_LEVEL",
    type: "choice",
    choices: ["trace", "debug", "info", "warning", "error", "critical", "off"],
    default: "warning",
    own: true,
    about: "Least level that Envoy logs; Istio has it as the flag --proxyLogLevel.",
  },
  proxyComponentLogLevel: {
    env: "PROXY_COMPONENT_LOG_LEVEL",
    type: "string",
    default: "",
    own: true,
    about: "Levels of single parts of Envoy, such as `misc:error`; Istio has it as the flag --proxyComponentLogLevel.",
  },
  envoyPath: {
    env: "ENVOY_PATH",
    type: "string",
    default: "",
    own: true,
    about: "Envoy binary; empty looks in PATH, then where the set-up puts it.",
  },
  logLevel: {
    env: "ISTIO_LOG_LEVEL",
    type: "choice",
    choices: ["debug", "info", "warn", "error"],
    default: "info",
    own: true,
    about: "Least level that the agent logs.",
  },
  logJson: { env: "ISTIO_LOG_AS_JSON", type: "bool", default: "false", own: true, about: "Log JSON records instead of text lines." },
} as const satisfies Record<string, SettingDef>;

/** The agent's settings as one value, read once from the process. */
export type AgentSettings = SettingsOf<typeof AGENT_SETTINGS>;
