import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ListenerFilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { BrotliSchema } from "../../gen/envoy/extensions/compression/brotli/compressor/v3/brotli_pb.js";
import { GzipSchema } from "../../gen/envoy/extensions/compression/gzip/compressor/v3/gzip_pb.js";
import { ZstdSchema } from "../../gen/envoy/extensions/compression/zstd/compressor/v3/zstd_pb.js";
import { CompressorSchema } from "../../gen/envoy/extensions/filters/http/compressor/v3/compressor_pb.js";
import { RouterSchema } from "../../gen/envoy/extensions/filters/http/router/v3/router_pb.js";
import { ProxyProtocolSchema } from "../../gen/envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol_pb.js";
import { TlsInspectorSchema } from "../../gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.js";
import {
  HttpConnectionManagerSchema,
  type HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../wire/encode.ts";
import { downstreamTlsContext, downstreamTlsSocket, MESH_ROOTS, WORKLOAD_CERTIFICATE } from "../tls/index.ts";

export const ADMIN_CLUSTER = "prometheus_stats";
export const AGENT_CLUSTER = "agent";

export interface AgentListenerInput {
  /** The first gives the listener its name. */
  readonly addresses: readonly string[];
  readonly port: number;
}

/** Envoy's metrics for whoever scrapes them, and nothing else of its admin interface. */
export const metricsListener = (input: AgentListenerInput & { readonly compressed: boolean }): Listener =>
  buildListener(input, {
    statPrefix: "stats",
    paths: ["/stats/prometheus"],
    cluster: ADMIN_CLUSTER,
    filters: input.compressed ? compressors() : [],
  });

/** The same for callers with a certificate of the mesh alone. */
export const secureMetricsListener = (input: AgentListenerInput): Listener =>
  buildListener(input, { statPrefix: "secure_stats", paths: ["/stats/prometheus"], cluster: ADMIN_CLUSTER, filters: [], secure: true });

/** What the agent has on its own port, metrics of agent and application among them, for callers with a certificate of the mesh alone. */
export const secureMergedMetricsListener = (input: AgentListenerInput): Listener =>
  buildListener(input, {
    statPrefix: "secure_merged_stats",
    paths: ["/stats/prometheus", "/metrics"],
    cluster: AGENT_CLUSTER,
    filters: [],
    secure: true,
  });

/** Readiness through Envoy: the answer is the agent's, and that it comes shows that Envoy takes connections. */
export const readinessThroughEnvoy = (input: AgentListenerInput & { readonly proxyProtocol: boolean }): Listener =>
  buildListener(input, {
    statPrefix: "agent",
    paths: ["/healthz/ready"],
    cluster: AGENT_CLUSTER,
    filters: [],
    ...(input.proxyProtocol && { listenerFilter: PROXY_PROTOCOL }),
  });

type HttpFilter = MessageInitShape<typeof HttpFilterSchema>;
type ListenerFilter = MessageInitShape<typeof ListenerFilterSchema>;

interface Serving {
  readonly statPrefix: string;
  readonly paths: readonly string[];
  readonly cluster: string;
  readonly filters: readonly HttpFilter[];
  readonly listenerFilter?: ListenerFilter;
  /** Only for callers with a certificate of the mesh. */
  readonly secure?: boolean;
}

/** Neither limits on connections nor overload keep these out: they are how one finds out about both. */
function buildListener({ addresses, port }: AgentListenerInput, serving: Serving): Listener {
  const { statPrefix, paths, cluster, filters, secure } = serving;
  const listenerFilter = secure === true ? TLS_INSPECTOR : serving.listenerFilter;
  const [address = "", ...others] = addresses;
  const manager = create(HttpConnectionManagerSchema, {
    statPrefix,
    routeSpecifier: {
      case: "routeConfig",
      value: {
        virtualHosts: [
          {
            name: "backend",
            domains: ["*"],
            routes: paths.map(
              (path) =>
                ({
                  match: { pathSpecifier: { case: "prefix", value: path } },
                  action: { case: "route", value: { clusterSpecifier: { case: "cluster", value: cluster } } },
                }) as const,
            ),
          },
        ],
      },
    },
    httpFilters: [
      ...filters,
      { name: "envoy.filters.http.router", configType: { case: "typedConfig", value: anyOf(RouterSchema, create(RouterSchema)) } },
    ],
  });
  return create(ListenerSchema, {
    name: `${address.includes(":") ? `[${address}]` : address}_${port}`,
    address: socketAddress(address, port),
    additionalAddresses: others.map((other) => ({ address: socketAddress(other, port) })),
    ignoreGlobalConnLimit: true,
    bypassOverloadManager: true,
    ...(listenerFilter !== undefined && { listenerFilters: [listenerFilter] }),
    filterChains: [
      {
        ...(secure === true && { filterChainMatch: { transportProtocol: "tls" }, transportSocket: downstreamTlsSocket(MESH_TLS) }),
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            configType: { case: "typedConfig", value: anyOf(HttpConnectionManagerSchema, manager) },
          },
        ],
      },
    ],
  });
}

const PROXY_PROTOCOL = {
  name: "envoy.listener.proxy_protocol",
  configType: {
    case: "typedConfig",
    value: anyOf(ProxyProtocolSchema, create(ProxyProtocolSchema, { allowRequestsWithoutProxyProtocol: true })),
  },
} as const;

const socketAddress = (address: string, port: number) =>
  ({ address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } } }) as const;

const TLS_INSPECTOR = {
  name: "envoy.filters.listener.tls_inspector",
  configType: { case: "typedConfig", value: anyOf(TlsInspectorSchema, create(TlsInspectorSchema)) },
} as const;

/** The workload's own certificate, and the mesh's roots for those of callers. */
const MESH_TLS = downstreamTlsContext({
  certificates: [WORKLOAD_CERTIFICATE],
  validation: { roots: MESH_ROOTS, subjectAltNames: [] },
  requireClientCertificate: true,
  alpn: [],
});

const COMPRESSED_TYPES = [
  "text/plain",
  "application/vnd.google.protobuf",
  "application/openmetrics-text",
  "application/openmetrics-protobuf",
];

/** The client's choice of three. */
function compressors(): readonly HttpFilter[] {
  const libraries = [
    ["brotli", anyOf(BrotliSchema, create(BrotliSchema))],
    ["zstd", anyOf(ZstdSchema, create(ZstdSchema))],
    ["gzip", anyOf(GzipSchema, create(GzipSchema))],
  ] as const;
  return libraries.map(([name, library]) => {
    const compressor = create(CompressorSchema, {
      compressorLibrary: { name: `stats_${name}`, typedConfig: library },
      responseDirectionConfig: { commonConfig: { contentType: COMPRESSED_TYPES } },
    });
    return {
      name: `envoy.filters.http.compressor.${name}`,
      configType: { case: "typedConfig", value: anyOf(CompressorSchema, compressor) },
    } as const;
  });
}
