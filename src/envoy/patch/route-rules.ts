import { fromBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import {
  RateLimit_ActionSchema,
  RetryPolicy_RetryBackOffSchema,
  RouteAction_RequestMirrorPolicySchema,
  RouteActionSchema,
  RouteSchema,
  VirtualClusterSchema,
  VirtualHostSchema,
  WeightedCluster_ClusterWeightSchema,
} from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { LocalRateLimitSchema } from "../../gen/envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit_pb.js";
import { at, type Fault } from "./fault.ts";
import { typeNameOf } from "./merge-any.ts";
import { isRepeated, type MessageRule, messageRule, secondsOf } from "./message-rule.ts";

/** What all levels of a route table may say. */
interface RouteLevel {
  readonly requestHeadersToRemove: readonly string[];
  readonly responseHeadersToRemove: readonly string[];
  readonly typedPerFilterConfig: Readonly<Record<string, Any>>;
}

export const ROUTE_RULES: readonly MessageRule[] = [
  messageRule(RouteConfigurationSchema, (table) => [
    ...levelFaults(table),
    table.validateClusters === true && at("validate_clusters", "would cost the whole table where one cluster is missing"),
  ]),
  messageRule(RouteSchema, levelFaults),
  messageRule(VirtualHostSchema, (host) => [
    ...levelFaults(host),
    host.matcher !== undefined && host.routes.length > 0 && at("matcher", "cannot be combined with routes"),
  ]),
  messageRule(WeightedCluster_ClusterWeightSchema, (weight) => [
    ...levelFaults(weight),
    oneClusterFault("name", weight.name, weight.clusterHeader),
  ]),
  messageRule(RouteAction_RequestMirrorPolicySchema, ({ cluster, clusterHeader }) => [oneClusterFault("cluster", cluster, clusterHeader)]),
  messageRule(VirtualClusterSchema, ({ headers }) => [headers.length === 0 && at("headers", "must not be empty")]),
  messageRule(RouteActionSchema, ({ upgradeConfigs }) => [
    isRepeated(upgradeConfigs.map(({ upgradeType }) => upgradeType.toLowerCase())) &&
      at("upgrade_configs", "must not repeat an upgrade_type"),
    upgradeConfigs.some(({ upgradeType, connectConfig }) => connectConfig !== undefined && upgradeType.toUpperCase() !== "CONNECT") &&
      at("upgrade_configs", "can have a connect_config for CONNECT only"),
  ]),
  messageRule(RateLimit_ActionSchema, ({ actionSpecifier }) => [
    actionSpecifier.case === "dynamicMetadata" && at("dynamic_metadata", "is gone; metadata takes its place"),
  ]),
  messageRule(RetryPolicy_RetryBackOffSchema, ({ baseInterval, maxInterval }) => [
    secondsOf(maxInterval, Number.POSITIVE_INFINITY) < secondsOf(baseInterval, 0) &&
      at("max_interval", "must not be less than base_interval"),
  ]),
];

function levelFaults(level: RouteLevel): readonly (Fault | false)[] {
  const removed = (name: string, headers: readonly string[]): Fault | false =>
    headers.some((header) => header.startsWith(":") || header.toLowerCase() === "host") &&
    at(name, "cannot name the host or a pseudo header");
  return [
    removed("request_headers_to_remove", level.requestHeadersToRemove),
    removed("response_headers_to_remove", level.responseHeadersToRemove),
    ...Object.entries(level.typedPerFilterConfig).map(([name, any]) => overrideFault(`typed_per_filter_config.${name}`, any)),
  ];
}

const FILTERS = "envoy.extensions.filters.http";

/** Filters that know another type for routes than their own. */
const WITH_OWN_ROUTE_TYPE: ReadonlySet<string> = new Set(
  ["buffer.v3.Buffer", "compressor.v3.Compressor", "ext_authz.v3.ExtAuthz", "ext_proc.v3.ExternalProcessor"]
    .concat(["header_mutation.v3.HeaderMutation", "jwt_authn.v3.JwtAuthentication", "lua.v3.Lua", "ratelimit.v3.RateLimit", "rbac.v3.RBAC"])
    .map((type) => `${FILTERS}.${type}`),
);

/** What a route may say about a filter. */
function overrideFault(path: string, any: Any): Fault | false {
  const type = typeNameOf(any);
  if (WITH_OWN_ROUTE_TYPE.has(type) && any.value.length > 0) return at(path, `cannot be a ${type}: routes take the filter's PerRoute type`);
  if (type !== LocalRateLimitSchema.typeName) return false;
  return fromBinary(LocalRateLimitSchema, any.value).tokenBucket === undefined && at(`${path}.token_bucket`, "must be set");
}

function oneClusterFault(field: string, cluster: string, header: string): Fault | false {
  if (cluster === "" && header === "") return at("", `must have ${field} or cluster_header`);
  return cluster !== "" && header !== "" && at(field, "cannot be combined with cluster_header");
}
