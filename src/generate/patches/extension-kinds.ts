import type { DescField } from "@bufbuild/protobuf";
import type { FieldPath } from "../../config/problem.ts";
import { AccessLogSchema, ExtensionFilterSchema } from "../../gen/envoy/config/accesslog/v3/accesslog_pb.js";
import { Cluster_CustomClusterTypeSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { FilterSchema as ClusterFilterSchema } from "../../gen/envoy/config/cluster/v3/filter_pb.js";
import { TransportSocketSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import { HealthCheck_CustomHealthCheckSchema } from "../../gen/envoy/config/core/v3/health_check_pb.js";
import { FilterSchema, ListenerFilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import {
  RetryPolicy_RetryHostPredicateSchema,
  RetryPolicy_RetryPrioritySchema,
} from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { Tracing_HttpSchema } from "../../gen/envoy/config/trace/v3/http_tracer_pb.js";
import {
  HttpFilterSchema,
  RequestIDExtensionSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";

/** What Envoy looks for by the type of configuration in these messages: how the kinds of such extensions begin. */
const BY_MESSAGE: ReadonlyMap<string, string> = new Map([
  [HttpFilterSchema.typeName, "envoy.filters.http"],
  [FilterSchema.typeName, "envoy.filters.network"],
  [ListenerFilterSchema.typeName, "envoy.filters.listener"],
  [TransportSocketSchema.typeName, "envoy.transport_sockets"],
  [AccessLogSchema.typeName, "envoy.access_loggers"],
  [ExtensionFilterSchema.typeName, "envoy.access_loggers.extension_filters"],
  [ClusterFilterSchema.typeName, "envoy.filters.upstream_network"],
  [Cluster_CustomClusterTypeSchema.typeName, "envoy.clusters"],
  [HealthCheck_CustomHealthCheckSchema.typeName, "envoy.health_checkers"],
  [RetryPolicy_RetryHostPredicateSchema.typeName, "envoy.retry_host_predicates"],
  [RetryPolicy_RetryPrioritySchema.typeName, "envoy.retry_priorities"],
  [RequestIDExtensionSchema.typeName, "envoy.request_id"],
  [Tracing_HttpSchema.typeName, "envoy.tracers"],
]);

/** The same by the field that holds an extension in the form that they have in common; other fields may hold several kinds. */
const BY_FIELD: ReadonlyMap<string, string> = new Map([
  ["actions", "envoy.rate_limit_descriptors"],
  ["cluster_specifier_plugins", "envoy.router.cluster_specifier_plugin"],
  ["compressor_library", "envoy.compression.compressor"],
  ["decompressor_library", "envoy.compression.decompressor"],
  ["early_data_policy", "envoy.route.early_data_policy"],
  ["early_header_mutation_extensions", "envoy.http.early_header_mutation"],
  ["extend_balance", "envoy.network.connection_balance"],
  ["formatters", "envoy.formatter"],
  ["inline_cluster_specifier_plugin", "envoy.router.cluster_specifier_plugin"],
  ["original_ip_detection_extensions", "envoy.http.original_ip_detection"],
  ["path_match_policy", "envoy.path.match"],
  ["path_rewrite_policy", "envoy.path.rewrite"],
  ["predicates", "envoy.internal_redirect_predicates"],
  ["resource_detectors", "envoy.tracers.opentelemetry.resource_detectors"],
  ["retry_options_predicates", "envoy.retry_options_predicates"],
  ["session_state", "envoy.http.stateful_session"],
  ["stateful_formatter", "envoy.http.stateful_header_formatters"],
  ["typed_dns_resolver_config", "envoy.network.dns_resolver"],
  ["typed_extension_config", "envoy.load_balancing_policies"],
  ["upstream_config", "envoy.upstreams"],
]);

/** What kind of extension a configuration at a place of a patch is for; undefined where any message may stand. */
export function kindFor({ name, parent }: DescField, path: FieldPath): string | undefined {
  if (name === "typed_per_filter_config") return "envoy.filters.http";
  if (parent.typeName !== TypedExtensionConfigSchema.typeName) return BY_MESSAGE.get(parent.typeName);
  const holder = path.slice(0, -1).findLast((part): part is string => typeof part === "string" && part !== "extension");
  // A patch that is such a message itself is asked for by filters.
  return holder === undefined ? "envoy.filters." : BY_FIELD.get(snakeCase(holder));
}

/** Fields may be written either way. */
const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
