import { create, fromBinary } from "@bufbuild/protobuf";
import { type Any, anyUnpack } from "@bufbuild/protobuf/wkt";
import { sdsSecret } from "../../src/envoy/tls/index.ts";
import { type Bootstrap, BootstrapSchema } from "../../src/gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { type Cluster, Cluster_DiscoveryType, ClusterSchema } from "../../src/gen/envoy/config/cluster/v3/cluster_pb.js";
import type { TransportSocket } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { ApiConfigSource_ApiType, ApiVersion } from "../../src/gen/envoy/config/core/v3/config_source_pb.js";
import { TypedExtensionConfigSchema } from "../../src/gen/envoy/config/core/v3/extension_pb.js";
import { ClusterLoadAssignmentSchema } from "../../src/gen/envoy/config/endpoint/v3/endpoint_pb.js";
import type { Filter } from "../../src/gen/envoy/config/listener/v3/listener_components_pb.js";
import { type Listener, ListenerSchema } from "../../src/gen/envoy/config/listener/v3/listener_pb.js";
import { type RouteConfiguration, RouteConfigurationSchema } from "../../src/gen/envoy/config/route/v3/route_pb.js";
import {
  HttpConnectionManagerSchema,
  type HttpFilter,
} from "../../src/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { ProxyProtocolUpstreamTransportSchema } from "../../src/gen/envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol_pb.js";
import { SdsSecretConfigSchema } from "../../src/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import { UpstreamTlsContextSchema } from "../../src/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import { anyOf } from "../../src/wire/encode.ts";
import type { Encoded, ResourceSet } from "../../src/wire/encoded.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, EXTENSION_CONFIG_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../../src/wire/type-urls.ts";
import type { Offer } from "./envoy-validate.ts";
import { wholeTable } from "./whole-table.ts";

export interface StaticBootstrap {
  readonly bootstrap: Bootstrap;
  /** What is wrong before Envoy is asked: references that only discovery would follow. */
  readonly faults: readonly { readonly label: string; readonly reason: string }[];
}

/**
 * One static bootstrap of all that several proxies are offered. Equal resources stand in it once; others of the same name or address get
 * another. Route tables and extensions stand inside their listeners, and each assignment inside a copy of its cluster. Clusters keep their names where
 * they can, since Envoy looks for those of loggers and tracers; it does not look for those of routes, as it would not under discovery.
 */
export function staticBootstrap(offers: readonly Offer[]): StaticBootstrap {
  const faults: { label: string; reason: string }[] = [];
  const clusters = new Distinct<Cluster>();
  const listeners = new Distinct<Listener>();
  for (const { label, resources } of offers) {
    const of = (typeUrl: string): ResourceSet["resources"] => resources.get(typeUrl)?.resources ?? new Map();
    const fault = (reason: string): void => void faults.push({ label, reason });
    for (const cluster of of(CLUSTER_TYPE).values()) addCluster(clusters, cluster, of(ENDPOINT_TYPE));
    for (const listener of of(LISTENER_TYPE).values()) addListener(listeners, { listener, resources, fault });
    for (const address of repeated([...of(LISTENER_TYPE).values()].flatMap((one) => boundAddresses(fromBinary(ListenerSchema, one.body)))))
      fault(`two listeners bind ${address}`);
  }
  for (const [index, listener] of listeners.values.entries()) moveToFreePort(listener, index);
  const bootstrap = create(BootstrapSchema, {
    node: { id: "validate", cluster: "validate" },
    dynamicResources: {
      adsConfig: {
        apiType: ApiConfigSource_ApiType.DELTA_GRPC,
        transportApiVersion: ApiVersion.V3,
        grpcServices: [{ targetSpecifier: { case: "envoyGrpc", value: { clusterName: "xds-grpc" } } }],
      },
    },
    staticResources: { clusters: [serverCluster("xds-grpc"), serverCluster("sds-grpc"), ...clusters.values], listeners: listeners.values },
  });
  return { bootstrap, faults };
}

/** Resources by content, with names that differ where content does. */
class Distinct<T extends { name: string }> {
  readonly values: T[] = [];
  readonly #seen = new Set<string>();
  readonly #names = new Map<string, number>();

  add(name: string, content: string, make: () => T): void {
    const key = `${name}\n${content}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    const count = (this.#names.get(name) ?? 0) + 1;
    this.#names.set(name, count);
    const value = make();
    value.name = count === 1 ? name : `${name} (${count})`;
    this.values.push(value);
  }
}

function addCluster(clusters: Distinct<Cluster>, { name, version, body }: Encoded, assignments: ResourceSet["resources"]): void {
  const cluster = secretsElsewhere(fromBinary(ClusterSchema, body));
  clusters.add(name, version, () => cluster);
  const assignment = assignments.get(cluster.edsClusterConfig?.serviceName || name);
  if (cluster.edsClusterConfig === undefined || assignment === undefined) return;
  clusters.add(`${name} with endpoints`, `${version} ${assignment.version}`, () => {
    const { edsClusterConfig: _, ...rest } = secretsElsewhere(fromBinary(ClusterSchema, body));
    const loadAssignment = fromBinary(ClusterLoadAssignmentSchema, assignment.body);
    return { ...rest, clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC }, loadAssignment };
  });
}

/**
 * Envoy 1.40 crashes where it validates a cluster of type STATIC with a secret over ADS; those of the agent it takes, and they look the same otherwise. A
 * running Envoy takes both.
 */
function secretsElsewhere(cluster: Cluster): Cluster {
  for (const socket of [cluster.transportSocket, ...cluster.transportSocketMatches.map(({ transportSocket }) => transportSocket)])
    secretsOfSocketElsewhere(socket);
  return cluster;
}

/** Of a socket, and of the one inside it. */
function secretsOfSocketElsewhere(socket: TransportSocket | undefined): void {
  if (socket?.configType.case !== "typedConfig") return;
  const outer = anyUnpack(socket.configType.value, ProxyProtocolUpstreamTransportSchema);
  if (outer !== undefined) {
    secretsOfSocketElsewhere(outer.transportSocket);
    socket.configType.value = anyOf(ProxyProtocolUpstreamTransportSchema, outer);
  }
  const context = anyUnpack(socket.configType.value, UpstreamTlsContextSchema);
  const common = context?.commonTlsContext;
  if (context === undefined || common === undefined) return;
  const combined = common.validationContextType.case === "combinedValidationContext" ? common.validationContextType.value : undefined;
  for (const secret of [...common.tlsCertificateSdsSecretConfigs, combined?.validationContextSdsSecretConfig]) {
    const elsewhere = create(SdsSecretConfigSchema, sdsSecret("elsewhere")).sdsConfig;
    if (secret !== undefined && elsewhere !== undefined) secret.sdsConfig = elsewhere;
  }
  socket.configType.value = anyOf(UpstreamTlsContextSchema, context);
}

interface ListenerToAdd {
  readonly listener: Encoded;
  readonly resources: Offer["resources"];
  readonly fault: (reason: string) => void;
}

/** The listener with everything in it that it would discover. */
function addListener(listeners: Distinct<Listener>, { listener: { name, version, body }, resources, fault }: ListenerToAdd): void {
  const listener = fromBinary(ListenerSchema, body);
  const used: string[] = [];
  const found = (typeUrl: string, kind: string, wanted: string): Encoded | undefined => {
    const resource = resources.get(typeUrl)?.resources.get(wanted);
    if (resource === undefined) fault(`listener ${name} names the ${kind} ${wanted}, which is not served`);
    else used.push(resource.version);
    return resource;
  };
  const discovery: Discovery = {
    table: (wanted) => {
      const table = found(ROUTE_TYPE, "route table", wanted);
      return table && wholeTable(table, resources);
    },
    extension: (wanted) => found(EXTENSION_CONFIG_TYPE, "extension", wanted),
  };
  const chains = [...listener.filterChains, ...(listener.defaultFilterChain === undefined ? [] : [listener.defaultFilterChain])];
  for (const filter of chains.flatMap(({ filters }) => filters)) {
    inlineExtension(filter, discovery);
    if (filter.configType.case === "typedConfig") filter.configType.value = withDiscovered(filter.configType.value, discovery);
  }
  listeners.add(name, [version, ...used].join(" "), () => listener);
}

interface Discovery {
  readonly table: (name: string) => RouteConfiguration | undefined;
  readonly extension: (name: string) => Encoded | undefined;
}

/** The HTTP connection manager with its route table and its filters' configurations inside; anything else as it is. */
function withDiscovered(config: Any, discovery: Discovery): Any {
  const manager = anyUnpack(config, HttpConnectionManagerSchema);
  if (manager === undefined) return config;
  for (const filter of manager.httpFilters) inlineExtension(filter, discovery);
  if (manager.routeSpecifier.case === "rds") {
    const name = manager.routeSpecifier.value.routeConfigName;
    const content = discovery.table(name) ?? create(RouteConfigurationSchema, { name });
    content.validateClusters ??= false;
    manager.routeSpecifier = { case: "routeConfig", value: content };
  }
  return anyOf(HttpConnectionManagerSchema, manager);
}

/** Extensions that are code are left to discovery: Envoy would load it, and it need not be on this machine. */
const CODE = ".wasm.v3.Wasm";

function inlineExtension(
  filter: Pick<HttpFilter | Filter, "name"> & { configType: HttpFilter["configType"] | Filter["configType"] },
  { extension }: Discovery,
): void {
  if (filter.configType.case !== "configDiscovery") return;
  const resource = extension(filter.name);
  const value = resource === undefined ? undefined : fromBinary(TypedExtensionConfigSchema, resource.body).typedConfig;
  if (value !== undefined && !value.typeUrl.endsWith(CODE)) filter.configType = { case: "typedConfig", value };
}

function boundAddresses(listener: Listener): readonly string[] {
  const all = [listener.address, ...listener.additionalAddresses.map(({ address }) => address)];
  return all.flatMap((address) => {
    if (address?.address.case === "pipe") return [address.address.value.path];
    if (address?.address.case !== "socketAddress") return [];
    const { address: host, portSpecifier, protocol } = address.address.value;
    return [`${host}:${portSpecifier.value} ${protocol}`];
  });
}

const repeated = (items: readonly string[]): readonly string[] => items.filter((item, index) => items.indexOf(item) < index);

const FIRST_PORT = 1_024;

/** Listeners of several proxies would meet on the same address. Nothing is bound, so any port will do. */
function moveToFreePort(listener: Listener, index: number): void {
  const all = [listener.address, ...listener.additionalAddresses.map(({ address }) => address)];
  for (const address of all) {
    if (address?.address.case === "socketAddress") address.address.value.portSpecifier = { case: "portValue", value: FIRST_PORT + index };
    if (address?.address.case === "pipe") address.address.value.path += `.${index}`;
  }
}

function serverCluster(name: string): Cluster {
  return create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    loadAssignment: { clusterName: name, endpoints: [] },
  });
}
