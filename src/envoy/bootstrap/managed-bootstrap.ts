import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import {
  type Bootstrap,
  type Bootstrap_DynamicResourcesSchema,
  BootstrapSchema,
} from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { Cluster_DiscoveryType, type ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import {
  ApiConfigSource_ApiType,
  type ApiConfigSourceSchema,
  ApiVersion,
  type ConfigSourceSchema,
} from "../../gen/envoy/config/core/v3/config_source_pb.js";
import type { Listener } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { FileAccessLogSchema } from "../../gen/envoy/extensions/access_loggers/file/v3/file_pb.js";
import { InternalListenerSchema } from "../../gen/envoy/extensions/bootstrap/internal_listener/v3/internal_listener_pb.js";
import { LeastRequestSchema } from "../../gen/envoy/extensions/load_balancing_policies/least_request/v3/least_request_pb.js";
import { DownstreamConnectionsConfigSchema } from "../../gen/envoy/extensions/resource_monitors/downstream_connections/v3/downstream_connections_pb.js";
import { anyOf } from "../../wire/encode.ts";
import { SELF_DISCOVERY_CLUSTER } from "../cluster/index.ts";
import {
  ADMIN_CLUSTER,
  AGENT_CLUSTER,
  metricsListener,
  readinessThroughEnvoy,
  secureMergedMetricsListener,
  secureMetricsListener,
} from "./agent-listeners.ts";
import { type AddressFamilies, everywhereOf, loopbackOf, loopbacksOf } from "./families.ts";
import { defaultTracer, type RemoteServices, remoteClusters, statsSinks } from "./remote-services.ts";
import { buildStatsConfig, type StatsInput } from "./stats-config.ts";

/** What a control plane decides of the bootstrap of an Envoy that an agent runs. Node, sockets and the admin port's address are the agent's to add. */
export interface ManagedBootstrapInput {
  readonly adminPort: number;
  /** The agent's own port on loopback. */
  readonly statusPort: number;
  /** Ports of the readiness and metrics listeners; 0 leaves one out. */
  readonly readinessPort: number;
  readonly prometheusPort: number;
  /** The same of listeners for callers with a certificate of the mesh: Envoy's metrics, and those of agent and application with them. */
  readonly secureMetricsPort: number;
  readonly secureMergedMetricsPort: number;
  readonly families: AddressFamilies;
  /** Envoy's own metrics are for programs on the same machine only. */
  readonly metricsLocally: boolean;
  /** Questions for readiness may come with a header of the PROXY protocol. */
  readonly readinessProxyProtocol: boolean;
  readonly stats: StatsInput;
  readonly statsCompression: boolean;
  /** Undefined leaves it to Envoy. */
  readonly statsFlushMs: number | undefined;
  /** Series of Istio's metrics that nothing was counted in for this long, or up to twice as long, are dropped; undefined keeps all. */
  readonly statsEvictionMs: number | undefined;
  readonly runtime: JsonObject;
  /** Most connections from clients at the same time. */
  readonly maxConnections: number;
  /** File that ejections of unhealthy endpoints are logged to; empty means none. */
  readonly outlierLogPath: string;
  /** Whom Envoy tells how much goes to each cluster; undefined leaves it out. */
  readonly loadStats: MessageInitShape<typeof ApiConfigSourceSchema> | undefined;
  /** A cluster of the workload's own kind is there from the start: balancing by zone counts from it how many of them share a zone. */
  readonly selfDiscovery: boolean;
  readonly services: RemoteServices;
  /** What the agent is told about running Envoy: a ProxyConfig as JSON; empty where there is nothing to say. */
  readonly runProxyConfig: string;
}

const ADS = {
  configSourceSpecifier: { case: "ads", value: {} },
  resourceApiVersion: ApiVersion.V3,
  initialFetchTimeout: { seconds: 0n },
} as const satisfies MessageInitShape<typeof ConfigSourceSchema>;

/** Everything else is asked for from the agent. */
const DYNAMIC = {
  ldsConfig: ADS,
  cdsConfig: ADS,
  adsConfig: {
    apiType: ApiConfigSource_ApiType.DELTA_GRPC,
    transportApiVersion: ApiVersion.V3,
    setNodeOnFirstMessageOnly: true,
    grpcServices: [{ targetSpecifier: { case: "envoyGrpc", value: { clusterName: "xds-grpc" } } }],
  },
} as const satisfies MessageInitShape<typeof Bootstrap_DynamicResourcesSchema>;

/** Builds it. Pure: equal inputs give equal bytes, so proxies that agree share it. */
export function buildManagedBootstrap(input: ManagedBootstrapInput): Bootstrap {
  const { families } = input;
  const tracing = defaultTracer(input.services);
  return create(BootstrapSchema, {
    // The agent takes it out again: it has a node of its own.
    ...(input.runProxyConfig !== "" && { node: { metadata: { RUN_PROXY_CONFIG: input.runProxyConfig } } }),
    applicationLogConfig: { logFormat: { logFormat: TEXT_LOG } },
    layeredRuntime: {
      layers: [
        { name: "global config", layerSpecifier: { case: "staticLayer", value: input.runtime } },
        { name: "admin", layerSpecifier: { case: "adminLayer", value: {} } },
      ],
    },
    bootstrapExtensions: [{ name: "envoy.bootstrap.internal_listener", typedConfig: anyOf(InternalListenerSchema, INTERNAL_LISTENER) }],
    ...(input.statsFlushMs !== undefined && { statsFlushInterval: durationOfMs(input.statsFlushMs) }),
    ...(input.statsEvictionMs !== undefined && { statsEvictionInterval: durationOfMs(input.statsEvictionMs) }),
    statsConfig: buildStatsConfig(input.stats),
    admin: {
      accessLog: [
        {
          name: "envoy.access_loggers.file",
          configType: { case: "typedConfig", value: anyOf(FileAccessLogSchema, create(FileAccessLogSchema, { path: "/dev/null" })) },
        },
      ],
    },
    dynamicResources: DYNAMIC,
    staticResources: {
      clusters: [
        loopbackCluster(ADMIN_CLUSTER, input.adminPort, loopbackOf(families)),
        loopbackCluster(AGENT_CLUSTER, input.statusPort, loopbackOf(families)),
        ...remoteClusters(input.services, families),
        ...(input.selfDiscovery ? [SELF_DISCOVERY] : []),
      ],
      listeners: listenersOf(input),
    },
    statsSinks: [...statsSinks(input.services)],
    ...(tracing !== undefined && { tracing }),
    overloadManager: {
      resourceMonitors: [
        {
          name: "envoy.resource_monitors.global_downstream_max_connections",
          configType: { case: "typedConfig", value: connectionLimit(input.maxConnections) },
        },
      ],
    },
    clusterManager: {
      enableDeferredClusterCreation: true,
      ...(input.selfDiscovery && { localClusterName: SELF_DISCOVERY_CLUSTER }),
      ...(input.outlierLogPath !== "" && { outlierDetection: { eventLogPath: input.outlierLogPath } }),
      ...(input.loadStats !== undefined && { loadStatsConfig: input.loadStats }),
    },
    deferredStatOptions: { enableDeferredCreationStats: true },
  });
}

/** Those that Envoy has before anything is asked for: metrics and readiness. */
function listenersOf(input: ManagedBootstrapInput): Listener[] {
  const everywhere = everywhereOf(input.families);
  return [
    ...(input.prometheusPort === 0
      ? []
      : [
          metricsListener({
            addresses: input.metricsLocally ? loopbacksOf(input.families) : everywhere,
            port: input.prometheusPort,
            compressed: input.statsCompression,
          }),
        ]),
    ...(input.secureMetricsPort === 0 ? [] : [secureMetricsListener({ addresses: everywhere, port: input.secureMetricsPort })]),
    ...(input.secureMergedMetricsPort === 0
      ? []
      : [secureMergedMetricsListener({ addresses: everywhere, port: input.secureMergedMetricsPort })]),
    ...(input.readinessPort === 0
      ? []
      : [readinessThroughEnvoy({ addresses: everywhere, port: input.readinessPort, proxyProtocol: input.readinessProxyProtocol })]),
  ];
}

const INTERNAL_LISTENER = create(InternalListenerSchema, { bufferSizeKb: 64 });

const TEXT_LOG = { case: "textFormat", value: "%Y-%m-%dT%T.%fZ\t%l\tenvoy %n %g:%#\t%v\tthread=%t" } as const;

const connectionLimit = (most: number) =>
  anyOf(DownstreamConnectionsConfigSchema, create(DownstreamConnectionsConfigSchema, { maxActiveDownstreamConnections: BigInt(most) }));

/** Balancing that looks at zones, so that Envoy asks for the cluster's endpoints by zone. */
const SELF_DISCOVERY: MessageInitShape<typeof ClusterSchema> = {
  name: SELF_DISCOVERY_CLUSTER,
  altStatName: `${SELF_DISCOVERY_CLUSTER};`,
  clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.EDS },
  connectTimeout: durationOfMs(1_000),
  loadBalancingPolicy: {
    policies: [
      {
        typedExtensionConfig: {
          name: "envoy.load_balancing_policies.least_request",
          typedConfig: anyOf(
            LeastRequestSchema,
            create(LeastRequestSchema, {
              localityLbConfig: { localityConfigSpecifier: { case: "zoneAwareLbConfig", value: { minClusterSize: 1n } } },
            }),
          ),
        },
      },
    ],
  },
  edsClusterConfig: {
    serviceName: SELF_DISCOVERY_CLUSTER,
    edsConfig: { configSourceSpecifier: { case: "ads", value: {} }, resourceApiVersion: ApiVersion.V3 },
  },
};

function loopbackCluster(name: string, port: number, address: string): MessageInitShape<typeof ClusterSchema> {
  const at = { address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } } } as const;
  return {
    name,
    altStatName: `${name};`,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    connectTimeout: durationOfMs(250),
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value: { address: at } } }] }],
    },
  };
}
