import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import { Cluster_DiscoveryType, type Cluster_DnsLookupFamily, type ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import type { StatsSinkSchema } from "../../gen/envoy/config/metrics/v3/stats_pb.js";
import { DatadogConfigSchema } from "../../gen/envoy/config/trace/v3/datadog_pb.js";
import type { TracingSchema } from "../../gen/envoy/config/trace/v3/http_tracer_pb.js";
import { ZipkinConfig_CollectorEndpointVersion, ZipkinConfigSchema } from "../../gen/envoy/config/trace/v3/zipkin_pb.js";
import { HttpProtocolOptionsSchema } from "../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js";
import { anyOf, typedStruct } from "../../wire/encode.ts";
import { type UpstreamTlsInput, upstreamTlsContext, upstreamTlsSocket } from "../tls/index.ts";
import { type AddressFamilies, lookupOf } from "./families.ts";

/** A program that Envoy sends something to from its first moment on. */
export interface RemoteService {
  readonly host: string;
  readonly port: number;
  readonly tls?: UpstreamTlsInput;
  /** Probes of connections that are silent. */
  readonly keepalive?: TcpKeepalive;
}

/** Of seconds, and a number; what is not given is the system's. */
export interface TcpKeepalive {
  readonly keepaliveProbes?: number;
  readonly keepaliveTime?: number;
  readonly keepaliveInterval?: number;
}

/** Where an Envoy reports to, apart from what its listeners say. */
export interface RemoteServices {
  /** Where spans go of listeners that name no tracer of their own. */
  readonly tracer?: RemoteService & { readonly kind: "zipkin" | "datadog"; readonly serviceName: string };
  readonly metricsService?: RemoteService;
  readonly accessLogService?: RemoteService;
  readonly statsd?: RemoteService;
}

type ClusterInit = MessageInitShape<typeof ClusterSchema>;

const TRACER_CLUSTERS = { zipkin: "zipkin", datadog: "datadog_agent" } as const;
const METRICS_CLUSTER = "envoy_metrics_service";
/** The cluster that stands for ProxyConfig envoyAccessLogService. */
export const ACCESS_LOG_CLUSTER = "envoy_accesslog_service";

/** Clusters for those that are called over HTTP. */
export function remoteClusters(
  { tracer, metricsService, accessLogService }: RemoteServices,
  families: AddressFamilies,
): readonly ClusterInit[] {
  const lookup = lookupOf(families);
  return [
    ...(tracer === undefined
      ? []
      : [remoteCluster(TRACER_CLUSTERS[tracer.kind], tracer, { http2: false, refreshMs: tracer.kind === "zipkin" ? 30_000 : 0, lookup })]),
    ...(metricsService === undefined ? [] : [remoteCluster(METRICS_CLUSTER, metricsService, { http2: true, refreshMs: 0, lookup })]),
    ...(accessLogService === undefined ? [] : [remoteCluster(ACCESS_LOG_CLUSTER, accessLogService, { http2: true, refreshMs: 0, lookup })]),
  ];
}

const HTTP2 = create(HttpProtocolOptionsSchema, {
  upstreamProtocolOptions: { case: "explicitHttpConfig", value: { protocolConfig: { case: "http2ProtocolOptions", value: {} } } },
});

interface Calling {
  readonly http2: boolean;
  /** How often its name is looked up again; 0 leaves it to Envoy. */
  readonly refreshMs: number;
  readonly lookup: Cluster_DnsLookupFamily;
}

function remoteCluster(name: string, { host, port, tls, keepalive }: RemoteService, { http2, refreshMs, lookup }: Calling): ClusterInit {
  const address = {
    address: { case: "socketAddress", value: { address: host, portSpecifier: { case: "portValue", value: port } } },
  } as const;
  return {
    name,
    altStatName: `${name};`,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STRICT_DNS },
    respectDnsTtl: true,
    dnsLookupFamily: lookup,
    connectTimeout: durationOfMs(1_000),
    loadAssignment: { clusterName: name, endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value: { address } } }] }] },
    ...(tls !== undefined && { transportSocket: upstreamTlsSocket(upstreamTlsContext(tls)) }),
    ...(keepalive !== undefined && { upstreamConnectionOptions: { tcpKeepalive: keepalive } }),
    ...(refreshMs > 0 && { dnsRefreshRate: durationOfMs(refreshMs) }),
    ...(http2 && {
      typedExtensionProtocolOptions: {
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": anyOf(HttpProtocolOptionsSchema, HTTP2),
      },
    }),
  };
}

/** The tracer of listeners that name none. */
export function defaultTracer({ tracer }: RemoteServices): MessageInitShape<typeof TracingSchema> | undefined {
  if (tracer === undefined) return undefined;
  const collectorCluster = TRACER_CLUSTERS[tracer.kind];
  if (tracer.kind === "datadog") {
    const config = create(DatadogConfigSchema, { collectorCluster, serviceName: tracer.serviceName });
    return { http: { name: "envoy.tracers.datadog", configType: { case: "typedConfig", value: anyOf(DatadogConfigSchema, config) } } };
  }
  const config = create(ZipkinConfigSchema, {
    collectorCluster,
    collectorEndpoint: "/api/v2/spans",
    collectorEndpointVersion: ZipkinConfig_CollectorEndpointVersion.HTTP_JSON,
    traceId128bit: true,
    sharedSpanContext: false,
  });
  return { http: { name: "envoy.tracers.zipkin", configType: { case: "typedConfig", value: anyOf(ZipkinConfigSchema, config) } } };
}

type SinkInit = MessageInitShape<typeof StatsSinkSchema>;

/** Who statistics are sent to. */
export function statsSinks({ metricsService, statsd }: RemoteServices): readonly SinkInit[] {
  const sink = (name: string, typeUrl: string, value: Parameters<typeof typedStruct>[1]): SinkInit => ({
    name: `envoy.stat_sinks.${name}`,
    configType: { case: "typedConfig", value: typedStruct(`type.googleapis.com/envoy.config.metrics.v3.${typeUrl}`, value) },
  });
  return [
    ...(metricsService === undefined
      ? []
      : [
          sink("metrics_service", "MetricsServiceConfig", {
            transport_api_version: "V3",
            grpc_service: { envoy_grpc: { cluster_name: METRICS_CLUSTER } },
          }),
        ]),
    ...(statsd === undefined
      ? []
      : [sink("statsd", "StatsdSink", { address: { socket_address: { address: statsd.host, port_value: statsd.port } } })]),
  ];
}
