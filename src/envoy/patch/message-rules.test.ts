import assert from "node:assert/strict";
import { type DescMessage, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { AccessLogSchema } from "../../gen/envoy/config/accesslog/v3/accesslog_pb.js";
import { BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { TransportSocketSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { FilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { RouteSchema, VirtualHostSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import {
  HttpConnectionManager_TracingSchema,
  HttpConnectionManagerSchema,
  HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { messageRegistry } from "../../wire/json.ts";
import { messageFaults } from "./apply.ts";
import { faultText } from "./fault.ts";

const registry = await messageRegistry();
const T = "type.googleapis.com/envoy.extensions";
const any = (type: string, fields: JsonObject = {}): JsonObject => ({ "@type": `${T}.${type}`, ...fields });
const endpoints = (...addresses: readonly string[]): JsonObject => ({
  clusterName: "a",
  endpoints: [{ lbEndpoints: addresses.map((address) => ({ endpoint: { address: { socketAddress: { address, portValue: 80 } } } })) }],
});
const original = { type: "ORIGINAL_DST", lbPolicy: "CLUSTER_PROVIDED" };

const HEALTH_CHECK = { timeout: "1s", interval: "1s", healthyThreshold: 1, unhealthyThreshold: 1, tcpHealthCheck: {} };

type Row = readonly [fields: JsonObject, faults: readonly string[]];

const CLUSTERS: readonly Row[] = [
  [
    { type: "STATIC", loadAssignment: endpoints("10.0.0.1", "::1"), edsClusterConfig: {} },
    ["eds_cluster_config is for clusters of type EDS"],
  ],
  [{ type: "EDS" }, ["eds_cluster_config.eds_config must be set in a cluster of type EDS"]],
  [{ ...original, loadAssignment: endpoints() }, ["load_assignment cannot be given for type ORIGINAL_DST"]],
  [{ type: "LOGICAL_DNS", loadAssignment: endpoints("a.test", "b.test") }, ["load_assignment must have one endpoint for type LOGICAL_DNS"]],
  [{ type: "STRICT_DNS", loadAssignment: endpoints("a.test", "b.test") }, []],
  [{ loadAssignment: endpoints("a.test") }, ["load_assignment must have IP addresses for type STATIC"]],
  [{ lbPolicy: "LOAD_BALANCING_POLICY_CONFIG" }, ["load_balancing_policy must be set where lb_policy says so"]],
  [{ type: "ORIGINAL_DST" }, ["lb_policy must be CLUSTER_PROVIDED for type ORIGINAL_DST"]],
  [original, []],
  [{ lbPolicy: "CLUSTER_PROVIDED" }, ["lb_policy cannot be CLUSTER_PROVIDED for type STATIC"]],
  [{ loadBalancingPolicy: { policies: [{}] } }, ["load_balancing_policy must have a policy"]],
  [
    { clusterType: { name: "x", typedConfig: any("clusters.aggregate.v3.ClusterConfig", { clusters: ["b"] }) } },
    ["lb_policy must be CLUSTER_PROVIDED for this cluster_type"],
  ],
  [
    { lbSubsetConfig: { localityWeightAware: true } },
    ["lb_subset_config.locality_weight_aware needs common_lb_config.locality_weighted_lb_config"],
  ],
  [
    { lbPolicy: "RING_HASH", ringHashLbConfig: { minimumRingSize: "9", maximumRingSize: "8" } },
    ["ring_hash_lb_config.minimum_ring_size must not be more than maximum_ring_size"],
  ],
  [{ lbPolicy: "MAGLEV", maglevLbConfig: { tableSize: "100" } }, ["maglev_lb_config.table_size must be a prime number"]],
  [{ maglevLbConfig: { tableSize: "100" } }, []],
  [{ ...original, originalDstLbConfig: { httpHeaderName: "x" } }, ["original_dst_lb_config.http_header_name needs use_http_header"]],
  [{ outlierDetection: { maxEjectionTime: "20s" } }, ["outlier_detection.max_ejection_time must not be less than base_ejection_time"]],
  [{ outlierDetection: { baseEjectionTime: "600s" } }, []],
  [{ healthChecks: [HEALTH_CHECK] }, []],
  [{ healthChecks: [HEALTH_CHECK, HEALTH_CHECK] }, ["health_checks must not be more than one"]],
  [{ metadata: { typedFilterMetadata: { a: any("filters.network.connection_limit.v3.ConnectionLimit") } } }, []],
  [
    { type: "EDS", edsClusterConfig: { edsConfig: { apiConfigSource: { transportApiVersion: "V3" } } } },
    ["eds_cluster_config.eds_config.api_config_source.api_type must be set"],
  ],
  [
    { circuitBreakers: { perHostThresholds: [{ maxRequests: 1 }] } },
    ["circuit_breakers.per_host_thresholds can limit max_connections alone"],
  ],
  [{ dnsRefreshRate: "9223372036s" }, ["dns_refresh_rate is longer than Envoy can count"]],
  [{ cleanupInterval: "1s", dnsJitter: "-1s" }, ["dns_jitter must not be negative"]],
  [
    { commonHttpProtocolOptions: { maxResponseHeadersKb: 9000 } },
    ["common_http_protocol_options.max_response_headers_kb must be between 1 and 8192"],
  ],
  [
    {
      typedExtensionProtocolOptions: {
        http: any("upstreams.http.v3.HttpProtocolOptions", { explicitHttpConfig: { httpProtocolOptions: {} } }),
      },
    },
    ["typed_extension_protocol_options must have the key envoy.extensions.upstreams.http.v3.HttpProtocolOptions, not http"],
  ],
  [{ transportSocket: { name: "tls" } }, ["transport_socket.typed_config must be set"]],
  [
    { upstreamBindConfig: { additionalSourceAddresses: [{ address: "::1", portValue: 0 }] } },
    ["upstream_bind_config.source_address must be set where there are further addresses"],
  ],
];

const ROUTES: readonly Row[] = [
  [
    { route: { cluster: "a", internalRedirectPolicy: { responseHeadersToCopy: ["x", "x"] } } },
    ["route.internal_redirect_policy.response_headers_to_copy must not repeat an item"],
  ],
  [{ requestHeadersToRemove: ["x", "Host"] }, ["request_headers_to_remove cannot name the host or a pseudo header"]],
  [{ responseHeadersToRemove: [":status"] }, ["response_headers_to_remove cannot name the host or a pseudo header"]],
  [
    { requestHeadersToAdd: [{ header: { key: "x" }, append: false, appendAction: "ADD_IF_ABSENT" }] },
    ["request_headers_to_add[0].append cannot be combined with append_action"],
  ],
  [{ route: { cluster: "a", requestMirrorPolicies: [{}] } }, ["route.request_mirror_policies[0] must have cluster or cluster_header"]],
  [
    { route: { weightedClusters: { clusters: [{ name: "a", clusterHeader: "b", weight: 1 }] } } },
    ["route.weighted_clusters.clusters[0].name cannot be combined with cluster_header"],
  ],
  [
    { route: { cluster: "a", upgradeConfigs: [{ upgradeType: "websocket", connectConfig: {} }, { upgradeType: "WebSocket" }] } },
    ["route.upgrade_configs can have a connect_config for CONNECT only", "route.upgrade_configs must not repeat an upgrade_type"],
  ],
  [
    {
      route: {
        cluster: "a",
        rateLimits: [{ actions: [{ dynamicMetadata: { descriptorKey: "a", metadataKey: { key: "b", path: [{ key: "c" }] } } }] }],
      },
    },
    ["route.rate_limits[0].actions[0].dynamic_metadata is gone; metadata takes its place"],
  ],
  [
    { match: { prefix: "/", headers: [{ name: "x", stringMatch: { safeRegex: { regex: "a" }, ignoreCase: true } }] } },
    ["match.headers[0].string_match.ignore_case has no effect on safe_regex"],
  ],
  [
    { route: { cluster: "a", retryPolicy: { retryBackOff: { baseInterval: "2s", maxInterval: "1s" } } } },
    ["route.retry_policy.retry_back_off.max_interval must not be less than base_interval"],
  ],
  [
    {
      typedPerFilterConfig: {
        a: any("filters.http.lua.v3.Lua", { inlineCode: "x" }),
        b: any("filters.http.lua.v3.LuaPerRoute", { name: "x" }),
      },
    },
    ["typed_per_filter_config.a cannot be a envoy.extensions.filters.http.lua.v3.Lua: routes take the filter's PerRoute type"],
  ],
  [
    { typedPerFilterConfig: { a: any("filters.http.local_ratelimit.v3.LocalRateLimit", { statPrefix: "x" }) } },
    ["typed_per_filter_config.a.token_bucket must be set"],
  ],
];

const HASH = `{SHA}${"x".repeat(28)}`;
const passwords = (inlineString: string): JsonObject => ({
  name: "a",
  typedConfig: any("filters.http.basic_auth.v3.BasicAuth", { users: { inlineString } }),
});

const OTHERS: readonly [schema: DescMessage, json: JsonObject, faults: readonly string[]][] = [
  [
    VirtualHostSchema,
    {
      name: "a",
      domains: ["*"],
      matcher: {},
      routes: [{ match: { prefix: "/" }, directResponse: { status: 200 } }],
      virtualClusters: [{ name: "b" }],
    },
    ["matcher cannot be combined with routes", "virtual_clusters[0].headers must not be empty"],
  ],
  [HttpFilterSchema, { name: "lua" }, ["typed_config must be set"]],
  [HttpFilterSchema, { name: "lua", isOptional: true }, []],
  [HttpFilterSchema, { name: "envoy.filters.http.cors" }, []],
  [
    HttpFilterSchema,
    { name: "a", typedConfig: any("filters.network.echo.v3.Echo") },
    ["typed_config cannot be a envoy.extensions.filters.network.echo.v3.Echo in this place"],
  ],
  [
    HttpFilterSchema,
    { name: "a", typedConfig: any("filters.http.cors.v3.CorsPolicy", { allowMethods: "GET" }) },
    ["typed_config cannot be a envoy.extensions.filters.http.cors.v3.CorsPolicy in this place"],
  ],
  [HttpFilterSchema, { name: "a", typedConfig: any("filters.http.basic_auth.v3.BasicAuth") }, ["typed_config.users must be set"]],
  [HttpFilterSchema, passwords(`# users\na:${HASH}\n\nb:${HASH}\n`), []],
  [
    HttpFilterSchema,
    passwords("a:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC"),
    ["typed_config.users.inline_string must have lines such as user:{SHA}hash, as htpasswd -s writes them"],
  ],
  [HttpFilterSchema, passwords(`a:${HASH}\na:${HASH}`), ["typed_config.users.inline_string must not repeat a user"]],
  [
    RouteSchema,
    {
      match: { prefix: "/" },
      directResponse: { status: 200 },
      typedPerFilterConfig: { a: any("filters.http.basic_auth.v3.BasicAuthPerRoute", { users: { inlineString: "a:b" } }) },
    },
    ["typed_per_filter_config.a.users.inline_string must have lines such as user:{SHA}hash, as htpasswd -s writes them"],
  ],
  [AccessLogSchema, { name: "log" }, ["typed_config must be set"]],
  [
    TransportSocketSchema,
    { name: "tls", typedConfig: any("transport_sockets.tls.v3.DownstreamTlsContext", { commonTlsContext: {} }) },
    ["typed_config.common_tls_context must have a certificate"],
  ],
  [
    FilterSchema,
    {
      name: "a",
      typedConfig: any("filters.network.local_ratelimit.v3.LocalRateLimit", {
        statPrefix: "a",
        tokenBucket: { maxTokens: 1, fillInterval: "0.01s" },
      }),
    },
    ["typed_config.token_bucket.fill_interval must be at least 0.05s"],
  ],
  [
    HttpConnectionManager_TracingSchema,
    {
      provider: {
        name: "a",
        typedConfig: { "@type": "type.googleapis.com/envoy.config.trace.v3.ZipkinConfig", collectorCluster: "a", collectorEndpoint: "/" },
      },
    },
    ["provider.typed_config.collector_endpoint_version must be set"],
  ],
  [
    HttpFilterSchema,
    { name: "a", typedConfig: any("filters.http.lua.v3.LuaPerRoute", { name: "x" }) },
    ["typed_config cannot be a envoy.extensions.filters.http.lua.v3.LuaPerRoute in this place"],
  ],
  [
    HttpFilterSchema,
    { name: "a", typedConfig: any("filters.http.lua.v3.Lua", { inlineCode: "x", defaultSourceCode: { inlineString: "y" } }) },
    ["typed_config.inline_code cannot be combined with default_source_code"],
  ],
  [
    HttpFilterSchema,
    {
      name: "a",
      typedConfig: any("filters.http.ext_authz.v3.ExtAuthz", {
        transportApiVersion: "V2",
        grpcService: { envoyGrpc: { clusterName: "c" } },
      }),
    },
    ["typed_config.transport_api_version must not be V2, which is gone"],
  ],
  [
    FilterSchema,
    { name: "a", typedConfig: any("filters.network.connection_limit.v3.ConnectionLimit", { statPrefix: "a" }) },
    ["typed_config.max_connections must be set"],
  ],
  [
    FilterSchema,
    {
      name: "a",
      typedConfig: any("filters.network.tcp_proxy.v3.TcpProxy", {
        statPrefix: "a",
        cluster: "c",
        upstreamConnectMode: "ON_DOWNSTREAM_DATA",
      }),
    },
    ["typed_config.max_early_data_bytes must be set where upstream_connect_mode waits"],
  ],
  [
    HttpConnectionManagerSchema,
    {
      statPrefix: "a",
      routeConfig: {},
      useRemoteAddress: true,
      originalIpDetectionExtensions: [{ name: "a", typedConfig: any("http.original_ip_detection.xff.v3.XffConfig") }],
      commonHttpProtocolOptions: { maxResponseHeadersKb: 9 },
      upgradeConfigs: [{ upgradeType: "websocket" }, { upgradeType: "WebSocket" }],
    },
    [
      "common_http_protocol_options.max_response_headers_kb is for clusters",
      "original_ip_detection_extensions cannot be combined with use_remote_address",
      "upgrade_configs must not repeat an upgrade_type",
    ],
  ],
];

const trigger = (name: string): JsonObject => ({ name, threshold: { value: 0.5 } });
const monitors = {
  resourceMonitors: [{ name: "heap", typedConfig: any("resource_monitors.fixed_heap.v3.FixedHeapConfig", { maxHeapSizeBytes: "9" }) }],
};
const BOOTSTRAPS: readonly Row[] = [
  [{ staticResources: { clusters: [{ name: "a" }, { name: "a" }] } }, ["static_resources.clusters must not repeat a name"]],
  [{ statsFlushOnAdmin: true, statsFlushInterval: "1s" }, ["stats_flush_on_admin cannot be combined with stats_flush_interval"]],
  [
    { layeredRuntime: { layers: ["a", "a"].map((name) => ({ name, adminLayer: {} })) } },
    ["layered_runtime.layers can have one admin_layer", "layered_runtime.layers must not repeat a name"],
  ],
  [
    {
      statsConfig: { statsTags: [{ tagName: "a" }, { regex: "b" }, { tagName: "c", fixedValue: "d" }, { tagName: "envoy.cluster_name" }] },
    },
    ["stats_config.stats_tags[0] must have regex or fixed_value", "stats_config.stats_tags[1].tag_name must be set"],
  ],
  [
    {
      overloadManager: { ...monitors, actions: [{ name: "envoy.overload_actions.stop_accepting_requests", triggers: [trigger("heap")] }] },
    },
    [],
  ],
  [
    {
      overloadManager: {
        ...monitors,
        loadshedPoints: [{ name: "envoy.load_shed_points.tcp_listener_accept", triggers: [trigger("help")] }],
      },
    },
    ["overload_manager.resource_monitors must have help, which a trigger names"],
  ],
  [
    { staticResources: { listeners: [{ address: { socketAddress: { address: "::1", portValue: 80 } } }] } },
    ["static_resources.listeners[0].filter_chains must not be empty"],
  ],
];

const FORMATS: readonly Row[] = [
  [{ requestHeadersToAdd: [{ header: { key: "x", value: "%REQ(a)% %PER_REQUEST_STATE(b)% 9%%" } }] }, []],
  [
    { responseHeadersToAdd: [{ header: { key: "x", value: "9%" } }] },
    [
      'response_headers_to_add[0].header.value "9%" has a percent sign that starts no complete operator such as %HOSTNAME%; write %% for the sign itself',
    ],
  ],
];

const log = (fields: JsonObject): JsonObject => ({
  typedConfig: any("access_loggers.file.v3.FileAccessLog", { path: "/dev/null", ...fields }),
});
const UNKNOWN = '"%REQ_WITHOUT_QUERY(x)%" is not an operator that Envoy knows';
const LOGS: readonly Row[] = [
  [log({ format: "%REQ_WITHOUT_QUERY(x)%" }), [`typed_config.format ${UNKNOWN}`]],
  [log({ jsonFormat: { a: "%PROTOCOL%", b: { c: ["%REQ_WITHOUT_QUERY(x)%"] } } }), [`typed_config.json_format.b.c.0 ${UNKNOWN}`]],
  [log({ typedJsonFormat: { a: "%REQ_WITHOUT_QUERY(x)%" } }), [`typed_config.typed_json_format.a ${UNKNOWN}`]],
  [log({ logFormat: { textFormat: "%REQ_WITHOUT_QUERY(x)%" } }), [`typed_config.log_format.text_format ${UNKNOWN}`]],
  [log({ logFormat: { jsonFormat: { a: "%REQ_WITHOUT_QUERY(x)%" } } }), [`typed_config.log_format.json_format.a ${UNKNOWN}`]],
  [
    log({ logFormat: { textFormatSource: { inlineString: "%REQ_WITHOUT_QUERY(x)%" } } }),
    [`typed_config.log_format.text_format_source.inline_string ${UNKNOWN}`],
  ],
  [
    log({
      logFormat: {
        textFormatSource: { inlineString: "%REQ_WITHOUT_QUERY(x)%" },
        formatters: [{ name: "f", typedConfig: any("formatter.req_without_query.v3.ReqWithoutQuery") }],
      },
    }),
    [],
  ],
];

const CHAIN = { filters: [{ name: "a", typedConfig: any("filters.network.echo.v3.Echo") }] };
const LISTENERS: readonly Row[] = [
  [{ address: null }, ["address must be set"]],
  [{ internalListener: {} }, ["internal_listener cannot be combined with an address"]],
  [{ address: { envoyInternalAddress: { serverListenerName: "a" } } }, ["address needs internal_listener where it is an internal one"]],
  [{ address: { socketAddress: { address: "::1", namedPort: "http" } } }, ["address.socket_address.named_port needs a resolver_name"]],
  [{ additionalAddresses: [{}] }, ["additional_addresses must have an address each"]],
  [{ apiListener: {} }, ["api_listener.api_listener must be set"]],
  [{ filterChainMatcher: {} }, ["filter_chain_matcher needs filter chains with a name each, and no two the same"]],
  [
    {
      filterChains: [{ ...CHAIN, filterChainMatch: { serverNames: ["*a.test", "*.b.test"], prefixRanges: [{ addressPrefix: "a.test" }] } }],
    },
    [
      "filter_chains[0].filter_chain_match.prefix_ranges[0].address_prefix must be an IP address",
      "filter_chains[0].filter_chain_match.server_names can have * as a whole first label only",
    ],
  ],
  [
    { filterChains: [{ ...CHAIN, filterChainMatch: { suffixLen: 1 } }] },
    ["filter_chains[0].filter_chain_match.address_suffix is not implemented by Envoy, nor is suffix_len"],
  ],
];

describe("rules of Envoy's code", () => {
  const check = (schema: DescMessage, json: JsonObject, faults: readonly string[]): void =>
    it(`${schema.name} ${JSON.stringify(json)}`, () =>
      assert.deepEqual(
        messageFaults(schema, fromJson(schema, json as JsonValue, { registry }), registry)
          .map(faultText)
          .toSorted(),
        faults,
      ));
  for (const [fields, faults] of CLUSTERS) check(ClusterSchema, { name: "a", ...fields }, faults);
  for (const [fields, faults] of BOOTSTRAPS) check(BootstrapSchema, fields, faults);
  for (const [fields, faults] of LOGS) check(AccessLogSchema, { name: "a", ...fields }, faults);
  for (const [fields, faults] of [...ROUTES, ...FORMATS])
    check(
      RouteSchema,
      { match: { prefix: "/" }, ...(fields.route === undefined && { directResponse: { status: 200 } }), ...fields },
      faults,
    );
  for (const [fields, faults] of LISTENERS)
    check(ListenerSchema, { address: { socketAddress: { address: "::1", portValue: 80 } }, filterChains: [CHAIN], ...fields }, faults);
  for (const [schema, json, faults] of OTHERS) check(schema, json, faults);
});
