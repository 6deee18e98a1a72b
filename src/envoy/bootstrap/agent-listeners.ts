import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { BrotliSchema } from "../../gen/envoy/extensions/compression/brotli/compressor/v3/brotli_pb.js";
import { GzipSchema } from "../../gen/envoy/extensions/compression/gzip/compressor/v3/gzip_pb.js";
import { ZstdSchema } from "../../gen/envoy/extensions/compression/zstd/compressor/v3/zstd_pb.js";
import { CompressorSchema } from "../../gen/envoy/extensions/filters/http/compressor/v3/compressor_pb.js";
import { RouterSchema } from "../../gen/envoy/extensions/filters/http/router/v3/router_pb.js";
import {
  HttpConnectionManagerSchema,
  type HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../wire/encode.ts";

export const ADMIN_CLUSTER = "prometheus_stats";
export const AGENT_CLUSTER = "agent";

export interface AgentListenerInput {
  readonly address: string;
  readonly port: number;
}

/** Envoy's metrics for whoever scrapes them, and nothing else of its admin interface. */
export const metricsListener = (input: AgentListenerInput & { readonly compressed: boolean }): Listener =>
  buildListener(input, {
    statPrefix: "stats",
    path: "/stats/prometheus",
    cluster: ADMIN_CLUSTER,
    filters: input.compressed ? compressors() : [],
  });

/** Readiness through Envoy: the answer is the agent's, and that it comes shows that Envoy takes connections. */
export const readinessThroughEnvoy = (input: AgentListenerInput): Listener =>
  buildListener(input, { statPrefix: "agent", path: "/healthz/ready", cluster: AGENT_CLUSTER, filters: [] });

type HttpFilter = MessageInitShape<typeof HttpFilterSchema>;

interface Serving {
  readonly statPrefix: string;
  readonly path: string;
  readonly cluster: string;
  readonly filters: readonly HttpFilter[];
}

/** Neither limits on connections nor overload keep these out: they are how one finds out about both. */
function buildListener({ address, port }: AgentListenerInput, { statPrefix, path, cluster, filters }: Serving): Listener {
  const manager = create(HttpConnectionManagerSchema, {
    statPrefix,
    routeSpecifier: {
      case: "routeConfig",
      value: {
        virtualHosts: [
          {
            name: "backend",
            domains: ["*"],
            routes: [
              {
                match: { pathSpecifier: { case: "prefix", value: path } },
                action: { case: "route", value: { clusterSpecifier: { case: "cluster", value: cluster } } },
              },
            ],
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
    address: { address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } } },
    ignoreGlobalConnLimit: true,
    bypassOverloadManager: true,
    filterChains: [
      {
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
