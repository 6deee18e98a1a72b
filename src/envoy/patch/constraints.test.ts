import assert from "node:assert/strict";
import { type DescMessage, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { RouteSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { HttpFilterSchema } from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { messageRegistry } from "../../wire/json.ts";
import { messageFaults } from "./apply.ts";
import { faultText } from "./fault.ts";

const registry = await messageRegistry();
const T = "type.googleapis.com/envoy.extensions.filters";
const filter = (type: string, fields: Readonly<Record<string, JsonValue>> = {}): JsonValue => ({
  name: type,
  typedConfig: { "@type": `${T}.${type}`, ...fields },
});
const router = filter("http.router.v3.Router");
const manager = (...httpFilters: readonly JsonValue[]): JsonValue =>
  filter("network.http_connection_manager.v3.HttpConnectionManager", {
    statPrefix: "x",
    httpFilters: [...httpFilters],
    routeConfig: { name: "r" },
  });
const tcp = filter("network.tcp_proxy.v3.TcpProxy", { statPrefix: "x", cluster: "c" });
const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
const many = numbers.map((number) => `a${number}`);
const ranges = numbers.map((number) => ({ addressPrefix: `10.0.0.${number}`, prefixLen: 32 }));
const listener = (...chains: readonly JsonValue[]): JsonValue => ({
  name: "l",
  address: { pipe: { path: "/p" } },
  filterChains: [...chains],
});

const CASES: readonly [title: string, schema: DescMessage, json: JsonValue, faults: readonly string[]][] = [
  ["a good cluster", ClusterSchema, { name: "a", connectTimeout: "1s" }, []],
  ["a name that must be there", ClusterSchema, {}, ["name must be set"]],
  ["a duration that must be positive", ClusterSchema, { name: "a", connectTimeout: "0s" }, ["connect_timeout must be more than 0s"]],
  [
    "a number that is too large",
    ClusterSchema,
    { name: "a", outlierDetection: { maxEjectionPercent: 101 } },
    ["outlier_detection.max_ejection_percent must be at most 100"],
  ],
  ["an enum that Envoy does not know", ClusterSchema, { name: "a", lbPolicy: 77 }, ["lb_policy has no value 77"]],
  [
    "a route without an action and without a match",
    RouteSchema,
    { name: "a" },
    ["must have one of route, redirect, direct_response, filter_action, non_forwarding_action", "match must be set"],
  ],
  [
    "a regular expression that RE2 does not take",
    RouteSchema,
    { match: { safeRegex: { regex: "a(?=b)" } }, directResponse: { status: 200 } },
    [
      "match.safe_regex.regex is not a regular expression that RE2 accepts: error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
    ],
  ],
  [
    "a disabled filter at the end",
    ListenerSchema,
    listener({ filters: [manager({ ...(router as object), disabled: true })] }),
    ["filter_chains[0].filters[0].typed_config.http_filters cannot end with a filter that is disabled"],
  ],
  ["something inside an Any", HttpFilterSchema, filter("http.local_ratelimit.v3.LocalRateLimit"), ["typed_config.stat_prefix must be set"]],
  [
    "a list that is too short",
    HttpFilterSchema,
    filter("http.ratelimit.v3.RateLimit", { domain: "d", rateLimitService: { grpcService: {} } }),
    ["typed_config.rate_limit_service.grpc_service must have one of envoy_grpc, google_grpc"],
  ],
  [
    "a header with a line break",
    RouteSchema,
    { match: { path: "/" }, directResponse: { status: 200 }, requestHeadersToAdd: [{ header: { key: "a\nb", value: "c" } }] },
    ["request_headers_to_add[0].header.key has characters that are not allowed in a header"],
  ],
  [
    "a Lua filter with two scripts for all routes",
    HttpFilterSchema,
    filter("http.lua.v3.Lua", { inlineCode: "a = 1", defaultSourceCode: { inlineString: "a = 1" } }),
    ["typed_config.inline_code cannot be combined with default_source_code"],
  ],
  ["a Lua filter with one", HttpFilterSchema, filter("http.lua.v3.Lua", { inlineCode: "a = 1" }), []],
  ["a good listener", ListenerSchema, listener({ filters: [manager(router)] }), []],
  [
    "a filter behind the router",
    ListenerSchema,
    listener({ filters: [manager(router, filter("http.cors.v3.Cors"))] }),
    [
      "filter_chains[0].filters[0].typed_config.http_filters[0] (http.router.v3.Router) must be the last filter",
      "filter_chains[0].filters[0].typed_config.http_filters cannot end with http.cors.v3.Cors, which passes everything on",
    ],
  ],
  [
    "two filters that end a chain",
    ListenerSchema,
    listener({ filters: [tcp, tcp] }),
    ["filter_chains[0].filters[0] (network.tcp_proxy.v3.TcpProxy) must be the last filter"],
  ],
  [
    "chains that take the same connections",
    ListenerSchema,
    listener({ filters: [tcp] }, { filters: [tcp] }),
    ["filter_chains[1] matches the same connections as filter_chains[0]"],
  ],
  [
    "chains that share one of several names",
    ListenerSchema,
    listener(
      { filters: [tcp], filterChainMatch: { serverNames: ["a.test", "b.test"], transportProtocol: "tls" } },
      { filters: [tcp], filterChainMatch: { serverNames: ["b.test", "c.test"], transportProtocol: "tls" } },
      { filters: [tcp], filterChainMatch: { serverNames: ["a.test"] } },
    ),
    ["filter_chains[1] matches the same connections as filter_chains[0]"],
  ],
  [
    "a chain that takes a hundred million sorts of connections",
    ListenerSchema,
    listener(
      {
        filters: [tcp],
        filterChainMatch: { serverNames: many, applicationProtocols: many, sourcePorts: numbers, directSourcePrefixRanges: ranges },
      },
      { filters: [tcp], filterChainMatch: { serverNames: ["a1"] } },
    ),
    [],
  ],
  [
    "a domain of two virtual hosts",
    RouteConfigurationSchema,
    {
      name: "r",
      virtualHosts: [
        { name: "a", domains: ["x"] },
        { name: "b", domains: ["X"] },
      ],
    },
    ["virtual_hosts[1] (b) has domain X, which a has already"],
  ],
];

describe("messageFaults", () => {
  for (const [title, schema, json, faults] of CASES) {
    it(`${faults.length === 0 ? "takes" : "finds"} ${title}`, () => {
      const message = fromJson(schema, json, { registry });
      assert.deepEqual(messageFaults(schema, message, registry).map(faultText), faults);
    });
  }
});
