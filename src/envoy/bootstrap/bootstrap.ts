import { isIP } from "node:net";
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { type Bootstrap, BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { type Cluster, Cluster_DiscoveryType, ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { ApiConfigSource_ApiType, ApiVersion, type ConfigSourceSchema } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import type { GrpcServiceSchema } from "../../gen/envoy/config/core/v3/grpc_service_pb.js";
import { UpstreamTlsContextSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import { HttpProtocolOptionsSchema } from "../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js";
import type { Locality } from "../../model/locality.ts";
import { anyOf } from "../../wire/encode.ts";
import { PROMETHEUS_CLUSTER, prometheusListener, readinessListener } from "./static-listeners.ts";
import { tokenClient } from "./token-client.ts";

/** All that decides how an Envoy starts. Everything else it learns over xDS. */
export interface BootstrapInput {
  readonly nodeId: string;
  readonly nodeCluster: string;
  readonly locality: Locality;
  readonly metadata: JsonObject;
  readonly discovery: DiscoveryServer;
  /** Port of Envoy's admin interface on loopback; 0 leaves it out. */
  readonly adminPort: number;
  /** Ports of the readiness and Prometheus listeners; 0 leaves one out. */
  readonly readinessPort: number;
  readonly prometheusPort: number;
  /** Where SDS is served beside the workload; undefined where nobody does. */
  readonly sdsSocket: string | undefined;
}

export interface DiscoveryServer {
  /** A name, an address, or `unix:` and the path of a socket, which is how a proxy in another network namespace reaches this machine's. */
  readonly host: string;
  /** Of no meaning for a socket. */
  readonly port: number;
  readonly protocol: "delta" | "sotw";
  readonly tls: DiscoveryTls | undefined;
}

export interface DiscoveryTls {
  readonly rootCertFile: string;
  readonly serverName: string;
  /** What the proxy proves its identity with. */
  readonly client?: { readonly certificateFile: string; readonly keyFile: string };
  /** File with a token that proves it instead; read at each call, so that a renewed token is used. */
  readonly tokenFile?: string;
}

const XDS_CLUSTER = "xds-grpc";
const SDS_CLUSTER = "sds-grpc";

const ADS = {
  configSourceSpecifier: { case: "ads", value: {} },
  resourceApiVersion: ApiVersion.V3,
  initialFetchTimeout: { seconds: 0n },
} as const satisfies MessageInitShape<typeof ConfigSourceSchema>;

/** The bootstrap of one Envoy: who it is, where its control plane is, and the few listeners it has before that answers. */
export function buildBootstrap(input: BootstrapInput): Bootstrap {
  return create(BootstrapSchema, {
    node: {
      id: input.nodeId,
      cluster: input.nodeCluster,
      locality: { region: input.locality.region, zone: input.locality.zone, subZone: input.locality.subzone },
      metadata: input.metadata,
    },
    ...(input.adminPort !== 0 && { admin: { address: socketAddress("127.0.0.1", input.adminPort) } }),
    statsConfig: {
      useAllDefaultTags: false,
      statsTags: STATS_TAGS.map(([tagName, value]) => ({ tagName, tagValue: { case: "regex" as const, value } })),
    },
    dynamicResources: {
      ldsConfig: ADS,
      cdsConfig: ADS,
      adsConfig: {
        apiType: input.discovery.protocol === "delta" ? ApiConfigSource_ApiType.DELTA_GRPC : ApiConfigSource_ApiType.GRPC,
        transportApiVersion: ApiVersion.V3,
        setNodeOnFirstMessageOnly: true,
        grpcServices: [discoveryService(input.discovery)],
      },
    },
    staticResources: {
      clusters: [
        ...(input.discovery.tls?.tokenFile === undefined ? [discoveryCluster(input.discovery)] : []),
        ...(input.sdsSocket === undefined ? [] : [sdsCluster(input.sdsSocket)]),
        ...(hasPrometheus(input) ? [adminCluster(input.adminPort)] : []),
      ],
      listeners: [
        ...(input.readinessPort === 0 ? [] : [readinessListener(input.readinessPort)]),
        ...(hasPrometheus(input) ? [prometheusListener(input.prometheusPort)] : []),
      ],
    },
    layeredRuntime: {
      layers: [
        { name: "global config", layerSpecifier: { case: "staticLayer", value: RUNTIME } },
        { name: "admin", layerSpecifier: { case: "adminLayer", value: {} } },
      ],
    },
  });
}

/** Limits Envoy recommends at the edge of a process that is exposed to others. */
const RUNTIME: JsonObject = { "overload.global_downstream_max_connections": "2147483647", "re2.max_program_size.error_level": "32768" };

/** How cluster names such as `outbound|80|v1|host` become labels instead of part of the metric's name. */
const STATS_TAGS: readonly (readonly [string, string])[] = [
  ["cluster_name", "^cluster\\.((.+?(\\..+?\\.svc\\.cluster\\.local)?)\\.)"],
  ["http_conn_manager_prefix", "^http\\.(((outbound_([0-9]{1,3}\\.{0,1}){4}_\\d{0,5})|([^\\.]+))\\.)"],
  ["listener_address", "^listener\\.(((?:[_.[:digit:]]*|[_\\[\\]aAbBcCdDeEfF[:digit:]]*))\\.)"],
];

const UNIX = "unix:";
const isUnix = ({ host }: DiscoveryServer): boolean => host.startsWith(UNIX);

type GrpcServiceInit = MessageInitShape<typeof GrpcServiceSchema>;

/** Envoy's own client has no way to send what stands in a file at the time of the call; the other one it has, Google's, does. */
function discoveryService(discovery: DiscoveryServer): GrpcServiceInit {
  const { tls } = discovery;
  return tls?.tokenFile === undefined
    ? { targetSpecifier: { case: "envoyGrpc", value: { clusterName: XDS_CLUSTER } } }
    : { targetSpecifier: { case: "googleGrpc", value: tokenClient(discovery, { ...tls, tokenFile: tls.tokenFile, name: XDS_CLUSTER }) } };
}

function discoveryCluster(discovery: DiscoveryServer): Cluster {
  const http2 = create(HttpProtocolOptionsSchema, {
    upstreamProtocolOptions: {
      case: "explicitHttpConfig",
      value: {
        protocolConfig: {
          case: "http2ProtocolOptions",
          value: { connectionKeepalive: { interval: { seconds: 30n }, timeout: { seconds: 10n } } },
        },
      },
    },
  });
  return create(ClusterSchema, {
    name: XDS_CLUSTER,
    clusterDiscoveryType: {
      case: "type",
      value: isUnix(discovery) || isIP(discovery.host) !== 0 ? Cluster_DiscoveryType.STATIC : Cluster_DiscoveryType.STRICT_DNS,
    },
    connectTimeout: { seconds: 1n },
    typedExtensionProtocolOptions: { "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": anyOf(HttpProtocolOptionsSchema, http2) },
    loadAssignment: singleEndpoint(
      XDS_CLUSTER,
      isUnix(discovery) ? pipeAddress(discovery.host.slice(UNIX.length)) : socketAddress(discovery.host, discovery.port),
    ),
    ...(discovery.tls !== undefined && { transportSocket: discoveryTls(discovery.tls) }),
    ...(!isUnix(discovery) && { upstreamConnectionOptions: { tcpKeepalive: { keepaliveTime: 300 } } }),
  });
}

function discoveryTls(tls: DiscoveryTls): NonNullable<MessageInitShape<typeof ClusterSchema>["transportSocket"]> {
  const context = create(UpstreamTlsContextSchema, {
    sni: tls.serverName,
    commonTlsContext: {
      alpnProtocols: ["h2"],
      ...(tls.client !== undefined && {
        tlsCertificates: [
          {
            certificateChain: { specifier: { case: "filename", value: tls.client.certificateFile } },
            privateKey: { specifier: { case: "filename", value: tls.client.keyFile } },
          },
        ],
      }),
      validationContextType: {
        case: "validationContext",
        value: {
          trustedCa: { specifier: { case: "filename", value: tls.rootCertFile } },
          matchTypedSubjectAltNames: [{ sanType: 2, matcher: { matchPattern: { case: "exact", value: tls.serverName } } }],
        },
      },
    },
  });
  return { name: "envoy.transport_sockets.tls", configType: { case: "typedConfig", value: anyOf(UpstreamTlsContextSchema, context) } };
}

const hasPrometheus = (input: BootstrapInput): boolean => input.prometheusPort !== 0 && input.adminPort !== 0;

function adminCluster(port: number): Cluster {
  return create(ClusterSchema, {
    name: PROMETHEUS_CLUSTER,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    connectTimeout: { seconds: 1n },
    loadAssignment: singleEndpoint(PROMETHEUS_CLUSTER, socketAddress("127.0.0.1", port)),
  });
}

function sdsCluster(socket: string): Cluster {
  const http2 = create(HttpProtocolOptionsSchema, {
    upstreamProtocolOptions: { case: "explicitHttpConfig", value: { protocolConfig: { case: "http2ProtocolOptions", value: {} } } },
  });
  return create(ClusterSchema, {
    name: SDS_CLUSTER,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    connectTimeout: { seconds: 1n },
    typedExtensionProtocolOptions: { "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": anyOf(HttpProtocolOptionsSchema, http2) },
    loadAssignment: singleEndpoint(SDS_CLUSTER, pipeAddress(socket)),
  });
}

type AddressInit = NonNullable<NonNullable<MessageInitShape<typeof BootstrapSchema>["admin"]>["address"]>;

function singleEndpoint(clusterName: string, address: AddressInit): NonNullable<MessageInitShape<typeof ClusterSchema>["loadAssignment"]> {
  return { clusterName, endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value: { address } } }] }] };
}

const pipeAddress = (path: string): AddressInit => ({ address: { case: "pipe", value: { path } } });

function socketAddress(address: string, port: number): AddressInit {
  return { address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } } };
}
