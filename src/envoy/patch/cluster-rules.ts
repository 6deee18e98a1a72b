import { fromBinary } from "@bufbuild/protobuf";
import { isIp } from "../../base/address.ts";
import { type CircuitBreakers_Thresholds, CircuitBreakersSchema } from "../../gen/envoy/config/cluster/v3/circuit_breaker_pb.js";
import {
  type Cluster,
  ClusterSchema,
  Cluster_DiscoveryType as DiscoveryType,
  Cluster_LbPolicy as LbPolicy,
} from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { OutlierDetectionSchema } from "../../gen/envoy/config/cluster/v3/outlier_detection_pb.js";
import { type Address, BindConfigSchema } from "../../gen/envoy/config/core/v3/address_pb.js";
import { ClusterConfigSchema as AggregateSchema } from "../../gen/envoy/extensions/clusters/aggregate/v3/cluster_pb.js";
import { ClusterConfigSchema as DynamicForwardProxySchema } from "../../gen/envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster_pb.js";
import { QuicUpstreamTransportSchema } from "../../gen/envoy/extensions/transport_sockets/quic/v3/quic_transport_pb.js";
import { RawBufferSchema } from "../../gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.js";
import {
  type HttpProtocolOptions,
  HttpProtocolOptionsSchema as UpstreamOptionsSchema,
} from "../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js";
import { at, type Fault } from "./fault.ts";
import { typeNameOf } from "./merge-any.ts";
import { type MessageRule, messageRule, secondsOf } from "./message-rule.ts";

/** Envoy's own defaults, which count where only one of two fields that must fit is given. */
const BASE_EJECTION_SECONDS = 30;
const MAX_EJECTION_SECONDS = 300;
const LEAST_RING = 1024n;
const LARGEST_RING = 8_388_608n;

export const CLUSTER_RULES: readonly MessageRule[] = [
  messageRule(ClusterSchema, (cluster) => [
    ...discoveryFaults(cluster),
    ...balancingFaults(cluster),
    ...optionFaults(cluster),
    ...algorithmFaults(cluster),
    // Envoy wants a name of each where there are several, which our descriptors have no field for.
    cluster.healthChecks.length > 1 && at("health_checks", "must not be more than one"),
  ]),
  messageRule(OutlierDetectionSchema, ({ maxEjectionTime, baseEjectionTime }) => {
    const base = secondsOf(baseEjectionTime, BASE_EJECTION_SECONDS);
    const most = secondsOf(maxEjectionTime, Math.max(MAX_EJECTION_SECONDS, base));
    return [most < base && at("max_ejection_time", "must not be less than base_ejection_time")];
  }),
  messageRule(CircuitBreakersSchema, ({ perHostThresholds }) => [
    perHostThresholds.some(hasMoreThanConnections) && at("per_host_thresholds", "can limit max_connections alone"),
  ]),
  messageRule(BindConfigSchema, ({ sourceAddress, extraSourceAddresses, additionalSourceAddresses }) => [
    sourceAddress === undefined &&
      extraSourceAddresses.length + additionalSourceAddresses.length > 0 &&
      at("source_address", "must be set where there are further addresses"),
  ]),
];

const hasMoreThanConnections = (one: CircuitBreakers_Thresholds): boolean =>
  one.trackRemaining ||
  [one.maxPendingRequests, one.maxRequests, one.maxRetries, one.maxConnectionPools, one.retryBudget].some((limit) => limit !== undefined);

/** How endpoints are found decides what else must and must not be given. */
function discoveryFaults(cluster: Cluster): readonly (Fault | false)[] {
  const type = discoveryOf(cluster);
  const endpoints = cluster.loadAssignment?.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints) ?? [];
  return [
    cluster.edsClusterConfig !== undefined && type !== DiscoveryType.EDS && at("eds_cluster_config", "is for clusters of type EDS"),
    type === DiscoveryType.EDS &&
      cluster.edsClusterConfig?.edsConfig === undefined &&
      at("eds_cluster_config.eds_config", "must be set in a cluster of type EDS"),
    type === DiscoveryType.ORIGINAL_DST &&
      cluster.loadAssignment !== undefined &&
      at("load_assignment", "cannot be given for type ORIGINAL_DST"),
    type === DiscoveryType.LOGICAL_DNS && endpoints.length !== 1 && at("load_assignment", "must have one endpoint for type LOGICAL_DNS"),
    type === DiscoveryType.STATIC &&
      endpoints.some(
        ({ hostIdentifier: { case: kind, value } }) => kind === "endpoint" && value.address !== undefined && isName(value.address),
      ) &&
      at("load_assignment", "must have IP addresses for type STATIC"),
  ];
}

/** A custom type is none of these; none at all is `STATIC`. */
function discoveryOf({ clusterDiscoveryType }: Cluster): DiscoveryType | undefined {
  if (clusterDiscoveryType.case === "clusterType") return undefined;
  return clusterDiscoveryType.value ?? DiscoveryType.STATIC;
}

/** Whether an address must be looked up, which nobody does for it here. */
const isName = ({ address }: Address): boolean =>
  address.case === "socketAddress" && address.value.resolverName === "" && !isIp(address.value.address);

function balancingFaults(cluster: Cluster): readonly (Fault | false)[] {
  const { lbPolicy, loadBalancingPolicy, lbSubsetConfig } = cluster;
  const type = discoveryOf(cluster);
  const provided = lbPolicy === LbPolicy.CLUSTER_PROVIDED;
  return [
    lbPolicy === LbPolicy.LOAD_BALANCING_POLICY_CONFIG &&
      loadBalancingPolicy === undefined &&
      at("load_balancing_policy", "must be set where lb_policy says so"),
    type === DiscoveryType.ORIGINAL_DST && !provided && at("lb_policy", "must be CLUSTER_PROVIDED for type ORIGINAL_DST"),
    provided &&
      type !== undefined &&
      type !== DiscoveryType.ORIGINAL_DST &&
      loadBalancingPolicy === undefined &&
      at("lb_policy", `cannot be CLUSTER_PROVIDED for type ${DiscoveryType[type]}`),
    provided &&
      (lbSubsetConfig?.subsetSelectors.length ?? 0) > 0 &&
      at("lb_subset_config", "cannot be combined with lb_policy CLUSTER_PROVIDED"),
    loadBalancingPolicy?.policies.every(({ typedExtensionConfig }) => typedExtensionConfig === undefined) === true &&
      at("load_balancing_policy", "must have a policy"),
    bringsBalancer(cluster) &&
      !provided &&
      loadBalancingPolicy === undefined &&
      at("lb_policy", "must be CLUSTER_PROVIDED for this cluster_type"),
    lbSubsetConfig?.localityWeightAware === true &&
      cluster.commonLbConfig?.localityConfigSpecifier.case !== "localityWeightedLbConfig" &&
      at("lb_subset_config.locality_weight_aware", "needs common_lb_config.locality_weighted_lb_config"),
  ];
}

/** Settings of an algorithm count where it is in use. */
function algorithmFaults(cluster: Cluster): readonly (Fault | false)[] {
  const { lbConfig, lbPolicy } = cluster;
  switch (lbConfig.case) {
    case "ringHashLbConfig": {
      const { minimumRingSize = LEAST_RING, maximumRingSize = LARGEST_RING } = lbConfig.value;
      const isEmpty = lbPolicy === LbPolicy.RING_HASH && minimumRingSize > maximumRingSize;
      return [isEmpty && at("ring_hash_lb_config.minimum_ring_size", "must not be more than maximum_ring_size")];
    }
    case "maglevLbConfig": {
      const { tableSize } = lbConfig.value;
      const isOdd = lbPolicy === LbPolicy.MAGLEV && tableSize !== undefined && !isPrime(Number(tableSize));
      return [isOdd && at("maglev_lb_config.table_size", "must be a prime number")];
    }
    case "originalDstLbConfig": {
      const { httpHeaderName, useHttpHeader } = lbConfig.value;
      const isUnused = discoveryOf(cluster) === DiscoveryType.ORIGINAL_DST && httpHeaderName !== "" && !useHttpHeader;
      return [isUnused && at("original_dst_lb_config.http_header_name", "needs use_http_header")];
    }
    default:
      return [];
  }
}

/** Custom types of clusters that choose endpoints themselves. */
const WITH_BALANCER: ReadonlySet<string> = new Set([AggregateSchema.typeName, DynamicForwardProxySchema.typeName]);

function bringsBalancer({ clusterDiscoveryType: { case: kind, value } }: Cluster): boolean {
  return kind === "clusterType" && value.typedConfig !== undefined && WITH_BALANCER.has(typeNameOf(value.typedConfig));
}

/** Envoy finds these options by their key. */
const OPTION_KEYS: ReadonlySet<string> = new Set([UpstreamOptionsSchema.typeName, "envoy.upstreams.http.http_protocol_options"]);

const optionFaults = (cluster: Cluster): readonly (Fault | false)[] =>
  Object.entries(cluster.typedExtensionProtocolOptions).map(([key, any]) => {
    if (typeNameOf(any) !== UpstreamOptionsSchema.typeName) return false;
    if (!OPTION_KEYS.has(key))
      return at("typed_extension_protocol_options", `must have the key ${UpstreamOptionsSchema.typeName}, not ${key}`);
    const reason = versionFault(cluster, fromBinary(UpstreamOptionsSchema, any.value));
    return reason !== undefined && at(`typed_extension_protocol_options.${key}`, reason);
  });

/** The version of HTTP must be one that can be agreed upon by the transport. */
function versionFault(cluster: Cluster, { upstreamProtocolOptions: { case: kind, value } }: HttpProtocolOptions): string | undefined {
  const sockets = [cluster.transportSocket, ...cluster.transportSocketMatches.map(({ transportSocket }) => transportSocket)];
  const types = sockets.map((socket) => (socket?.configType.case === "typedConfig" ? typeNameOf(socket.configType.value) : ""));
  if (kind === "autoConfig") {
    if (value.http3ProtocolOptions !== undefined && value.alternateProtocolsCacheOptions === undefined)
      return "needs alternate_protocols_cache_options where auto_config has HTTP/3";
    return types.some((type) => type === "" || type === RawBufferSchema.typeName) ? "cannot have auto_config without TLS" : undefined;
  }
  const isHttp3 =
    (kind === "explicitHttpConfig" && value.protocolConfig.case === "http3ProtocolOptions") ||
    (kind === "useDownstreamProtocolConfig" && value.http3ProtocolOptions !== undefined);
  return isHttp3 && types[0] !== QuicUpstreamTransportSchema.typeName ? "cannot have HTTP/3 without QUIC" : undefined;
}

function isPrime(value: number): boolean {
  if (value < 2) return false;
  for (let factor = 2; factor * factor <= value; factor++) if (value % factor === 0) return false;
  return true;
}
