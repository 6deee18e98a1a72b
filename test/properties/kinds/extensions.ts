import type { JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Make } from "../doc.ts";
import { docOf, joined, list, oneField, pick, selector, some, whole } from "./values.ts";

const SHA = "0".repeat(63);

/** Code by address: nothing fetches it here. */
const wasm = joined(
  whole({ url: pick("oci://images.test/x:v1", "https://files.test/x.wasm", "file:///opt/x.wasm", "images.test/x", "/x.wasm") }),
  some({
    pluginName: pick("plug", "p.l/u g"),
    sha256: pick(`${SHA}1`),
    imagePullPolicy: pick("UNSPECIFIED_POLICY", "IfNotPresent", "Always"),
    imagePullSecret: pick("pull"),
    pluginConfig: pick<JsonObject>({ a: [1, null, { b: "ü" }] }, {}),
    failStrategy: pick("FAIL_CLOSE", "FAIL_OPEN", "FAIL_RELOAD"),
    vmConfig: pick<JsonObject>({
      env: [
        { name: "A", value: "b" },
        { name: "HOME", valueFrom: "HOST" },
      ],
    }),
    type: pick("UNSPECIFIED_PLUGIN_TYPE", "HTTP", "NETWORK"),
  }),
);
const priority = pick(-2_147_483_648, 0, 2_147_483_647);
const match = list(
  some({
    mode: pick("CLIENT", "SERVER", "CLIENT_AND_SERVER"),
    ports: pick<JsonObject[]>([{ number: 80 }], [{ number: 5000 }, { number: 443 }]),
  }),
  [1, 2],
);

export const wasmPlugin: fc.Arbitrary<Make> = joined(
  wasm,
  whole({ selector }),
  some({ phase: pick("UNSPECIFIED_PHASE", "AUTHN", "AUTHZ", "STATS"), priority, match }),
).map((spec) => docOf("WasmPlugin", spec));

const lua = whole({
  inlineCode: pick(
    "function envoy_on_request(handle) end",
    "-- nothing at all",
    "local s = [==[ ünï ]==] .. '\\0\\xff' function envoy_on_response(h) h:headers():add('x', s) end",
  ),
});

export const trafficExtension: fc.Arbitrary<Make> = joined(
  whole({ selector }),
  oneField({ wasm, lua }),
  some({ phase: pick("UNSPECIFIED", "AUTHN", "AUTHZ", "STATS"), priority, match }),
).map((spec) => docOf("TrafficExtension", spec));

/** Settings of the process: no resource of a proxy is another for them. */
export const proxyConfig: fc.Arbitrary<Make> = joined(
  whole({ selector }),
  some({
    concurrency: pick(0, 1, 2_147_483_647),
    environmentVariables: pick<JsonObject>({ ISTIO_META_VHDS: "true" }, { "odd name": "", PATH: "ü" }),
    image: whole({ imageType: pick("distroless", "") }),
  }),
).map((spec) => docOf("ProxyConfig", spec));

const LUA = {
  name: "extra.lua",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
    default_source_code: { inline_string: "function envoy_on_request(handle) end" },
  },
};
const RATE = {
  name: "extra.limit",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit",
    stat_prefix: "limit",
    token_bucket: { max_tokens: 5, fill_interval: "1s" },
  },
};
const INSPECTOR = {
  name: "extra.inspector",
  typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector" },
};
const MANAGER = "envoy.filters.network.http_connection_manager";
const TCP = "envoy.filters.network.tcp_proxy";
const context = pick("ANY", "SIDECAR_INBOUND", "SIDECAR_OUTBOUND", "GATEWAY");

/** A patch with where it goes; the context is drawn beside it. */
const PATCHES: readonly { readonly applyTo: string; readonly match: JsonObject; readonly patch: JsonObject }[] = [
  { applyTo: "CLUSTER", match: {}, patch: { operation: "MERGE", value: { connect_timeout: "3s", dns_lookup_family: "V4_ONLY" } } },
  { applyTo: "CLUSTER", match: { cluster: { service: "h0.test" } }, patch: { operation: "REMOVE" } },
  { applyTo: "CLUSTER", match: {}, patch: { operation: "ADD", value: { name: "added", type: "STATIC", connect_timeout: "1s" } } },
  { applyTo: "LISTENER", match: {}, patch: { operation: "MERGE", value: { per_connection_buffer_limit_bytes: 1024 } } },
  { applyTo: "LISTENER", match: { listener: { portNumber: 5000 } }, patch: { operation: "REMOVE" } },
  { applyTo: "LISTENER_FILTER", match: {}, patch: { operation: "INSERT_FIRST", value: INSPECTOR } },
  { applyTo: "FILTER_CHAIN", match: {}, patch: { operation: "MERGE", value: { transport_socket_connect_timeout: "2s" } } },
  {
    applyTo: "NETWORK_FILTER",
    match: { listener: { filterChain: { filter: { name: TCP } } } },
    patch: { operation: "INSERT_BEFORE", value: RATE },
  },
  {
    applyTo: "NETWORK_FILTER",
    match: { listener: { filterChain: { filter: { name: MANAGER } } } },
    patch: {
      operation: "MERGE",
      value: {
        typed_config: {
          "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
          xff_num_trusted_hops: 2,
        },
      },
    },
  },
  {
    applyTo: "HTTP_FILTER",
    match: { listener: { filterChain: { filter: { name: MANAGER, subFilter: { name: "envoy.filters.http.router" } } } } },
    patch: { operation: "INSERT_BEFORE", value: LUA },
  },
  {
    applyTo: "HTTP_FILTER",
    match: { listener: { filterChain: { filter: { name: MANAGER, subFilter: { name: "envoy.filters.http.cors" } } } } },
    patch: { operation: "REMOVE" },
  },
  { applyTo: "HTTP_FILTER", match: {}, patch: { operation: "INSERT_FIRST", value: LUA } },
  { applyTo: "ROUTE_CONFIGURATION", match: {}, patch: { operation: "MERGE", value: { internal_only_headers: ["x-in"] } } },
  { applyTo: "VIRTUAL_HOST", match: {}, patch: { operation: "MERGE", value: { include_request_attempt_count: false } } },
  {
    applyTo: "VIRTUAL_HOST",
    match: {},
    patch: {
      operation: "ADD",
      value: { name: "more", domains: ["more.test"], routes: [{ match: { prefix: "/" }, direct_response: { status: 204 } }] },
    },
  },
  { applyTo: "HTTP_ROUTE", match: {}, patch: { operation: "MERGE", value: { response_headers_to_remove: ["x-out"] } } },
  {
    applyTo: "HTTP_ROUTE",
    match: {},
    patch: { operation: "INSERT_FIRST", value: { name: "front", match: { path: "/front" }, direct_response: { status: 200 } } },
  },
  { applyTo: "EXTENSION_CONFIG", match: {}, patch: { operation: "ADD", value: LUA } },
];
const configPatch = fc
  .tuple(fc.constantFrom(...PATCHES), context)
  .map(([{ applyTo, match, patch }, where]): JsonObject => ({ applyTo, match: { context: where, ...match }, patch }));

/** An EnvoyFilter with patches of every place. Each leaves Envoy something to run: what a user breaks in Envoy's terms is told elsewhere. */
export const envoyFilter: fc.Arbitrary<Make> = joined(
  whole({ configPatches: list(configPatch, [1, 3]) }),
  some({ workloadSelector: pick<JsonObject>({ labels: { app: "web" } }, { labels: { app: "edge" } }), priority: pick(-10, 0, 10) }),
).map((spec) => docOf("EnvoyFilter", spec));
