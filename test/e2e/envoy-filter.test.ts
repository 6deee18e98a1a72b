import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { PatchReport } from "../../src/generate/patches/report.ts";
import { call, tally } from "../support/calls.ts";
import { documentServer } from "../support/document-server.ts";
import type { Istiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { rule } from "../support/shop.ts";
import { startShop } from "../support/shop-mesh.ts";
import { eventually } from "../support/wait.ts";
import { headerModule } from "../support/wasm-module.ts";

const FILE = "conf/patches.yaml";

/** An EnvoyFilter; each patch is YAML in flow style. */
const envoyFilter = (...patches: readonly string[]): string => `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patches, namespace: shop}
spec:
  configPatches:
${patches.map((patch) => `  - ${patch}`).join("\n")}
`;

const type = (name: string): string => `"@type": type.googleapis.com/envoy.extensions.filters.http.${name}`;

/** A patch that puts an HTTP filter before the router of every connection manager. */
const httpFilter = (name: string, config: string): string =>
  `{applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: envoy.filters.http.router}}}}}, patch: {operation: INSERT_BEFORE, value: {name: ${name}, typed_config: {${config}}}}}`;

const lua = (code: string): string => httpFilter("shop.lua", `${type("lua.v3.Lua")}, default_source_code: {inline_string: "${code}"}`);

const ADD_HEADER = "function envoy_on_request(handle) handle:headers():add('x-lua', 'yes') end";

const LOCAL_RATE_LIMIT = httpFilter(
  "envoy.filters.http.local_ratelimit",
  `${type("local_ratelimit.v3.LocalRateLimit")}, stat_prefix: shop, token_bucket: {max_tokens: 3, tokens_per_fill: 3, fill_interval: 3600s}, filter_enabled: {default_value: {numerator: 100}}, filter_enforced: {default_value: {numerator: 100}}`,
);

const report = async (istiod: Istiod): Promise<readonly PatchReport[]> =>
  (await (await istiod.debug("/debug/envoyfilterz")).json()) as readonly PatchReport[];

describe.for(["sidecar", "gateway"] as const)("EnvoyFilters at a %s", (place) => {
  it("limit the rate of requests, and stop doing so when they are removed", async () => {
    const { istiod, proxy, target } = await startShop({
      place,
      http: rule("v1"),
      istiod: { env: { PILOT_ENVOY_FILTER_STATS: "true" } },
    });
    expect(await tally(8, target)).toEqual({ v1: 8 });
    await istiod.write(FILE, envoyFilter(LOCAL_RATE_LIMIT));
    await eventually("requests are limited", async () => (await call(target)).status === 429);
    expect(await tally(8, target)).toEqual({ "status 429": 8 });
    const [limit] = await report(istiod);
    expect(limit).toMatchObject({ object: "EnvoyFilter/shop/patches", patch: 0, proxies: 1, problems: [] });
    expect(limit?.applied).toBeGreaterThan(0);
    const status = (result: string): string => `name="shop/patches",patch="httpfilter",result="${result}"`;
    expect(await istiod.metric("pilot_envoy_filter_status", status("applied"))).toBe(1);
    expect(await istiod.metric("pilot_envoy_filter_status", status("error"))).toBe(0);
    await istiod.remove(FILE);
    await eventually("requests are no longer limited", async () => (await call(target)).status === 200);
    expect(await tally(8, target)).toEqual({ v1: 8 });
    await proxy.assertNothingRejected();
  });
});

describe("what EnvoyFilters can put in", () => {
  it("is code in Lua whose work the server sees", async () => {
    const { v1, target, proxy } = await startShop({ http: rule("v1"), istiod: { files: { [FILE]: envoyFilter(lua(ADD_HEADER)) } } });
    expect((await call(target)).by).toBe("v1");
    expect(v1.hits.at(-1)?.headers["x-lua"]).toBe("yes");
    await proxy.assertNothingRejected();
  });

  it("is put in by priority, for the versions and the metadata of proxies it is meant for, and beside filters of Istio's", async () => {
    const add = (value: string, match: string): string =>
      `{applyTo: HTTP_FILTER, match: {${match}}, patch: {operation: INSERT_FIRST, value: {name: shop.${value}, typed_config: {${type("lua.v3.Lua")}, default_source_code: {inline_string: "${ADD_HEADER.replace("yes", value)}"}}}}}`;
    const filter = (name: string, priority: number, patch: string): string =>
      envoyFilter(patch).replace("name: patches", `name: ${name}`).replace("spec:", `spec:\n  priority: ${priority}`);
    const beside = add(
      "stats",
      "listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.stats}}}}",
    );
    const documents = [
      filter("late", 10, add("late", "context: SIDECAR_OUTBOUND")),
      filter("early", -10, add("early", "context: ANY")),
      filter("inbound", 0, add("inbound", "context: SIDECAR_INBOUND")),
      filter("other-version", 0, add("version", 'proxy: {proxyVersion: "^9\\\\..*"}')),
      filter("other-place", 0, add("place", "proxy: {metadata: {CLUSTER_ID: elsewhere}}")),
      filter("stats", 0, beside.replace("INSERT_FIRST", "INSERT_BEFORE")),
    ];
    const { v1, target, proxy } = await startShop({
      http: rule("v1"),
      istiod: { files: { [FILE]: documents.join("---\n") } },
      metadata: { ISTIO_VERSION: "1.30.0", CLUSTER_ID: "here" },
    });
    expect((await call(target)).by).toBe("v1");
    expect(v1.hits.at(-1)?.headers["x-lua"]).toBe("late, early, stats");
    await proxy.assertNothingRejected();
  });

  it("is the configuration of a filter that asks for it by name", async () => {
    const discovered = httpFilter("x", "").replace(
      "typed_config: {}",
      `config_discovery: {config_source: {ads: {}, resource_api_version: V3}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}`,
    );
    const given = (value: string): string =>
      `{applyTo: EXTENSION_CONFIG, patch: {operation: ADD, value: {name: x, typed_config: {${type("lua.v3.Lua")}, default_source_code: {inline_string: "${ADD_HEADER.replace("yes", value)}"}}}}}`;
    const { istiod, v1, target, proxy } = await startShop({
      http: rule("v1"),
      istiod: { files: { [FILE]: envoyFilter(discovered, given("one")) } },
    });
    expect((await call(target)).by).toBe("v1");
    expect(v1.hits.at(-1)?.headers["x-lua"]).toBe("one");
    await istiod.write(FILE, envoyFilter(discovered, given("two")));
    await eventually("the new configuration is in force", async () => {
      await call(target);
      return v1.hits.at(-1)?.headers["x-lua"] === "two";
    });
    await proxy.assertNothingRejected();
  });

  it("is rate limiting and processing by other servers, with clusters for them", async () => {
    const port = await freePort();
    const cluster = `{applyTo: CLUSTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: ADD, value: {name: helper, type: STATIC, connect_timeout: 1s, http2_protocol_options: {}, load_assignment: {cluster_name: helper, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: ${port}}}}}]}]}}}}`;
    const service = "grpc_service: {envoy_grpc: {cluster_name: helper}, timeout: 0.25s}";
    const processing = httpFilter(
      "envoy.filters.http.ext_proc",
      `${type("ext_proc.v3.ExternalProcessor")}, ${service}, failure_mode_allow: true, processing_mode: {request_header_mode: SEND}`,
    );
    const limiting = httpFilter(
      "envoy.filters.http.ratelimit",
      `${type("ratelimit.v3.RateLimit")}, domain: shop, failure_mode_deny: true, timeout: 0.25s, rate_limit_service: {transport_api_version: V3, ${service}}`,
    );
    const asks = `{applyTo: VIRTUAL_HOST, match: {context: SIDECAR_OUTBOUND}, patch: {operation: MERGE, value: {rate_limits: [{actions: [{remote_address: {}}]}]}}}`;
    const { istiod, target, proxy } = await startShop({
      http: rule("v1"),
      istiod: { files: { [FILE]: envoyFilter(cluster, processing) } },
    });
    expect((await call(target)).by).toBe("v1");
    await eventually("the server was called", async () => (await proxy.stat("cluster.helper.upstream_cx_connect_fail")) > 0);
    await istiod.write(FILE, envoyFilter(cluster, limiting, asks));
    await eventually("requests are refused, for the server that decides is not there", async () => (await call(target)).status === 500);
    await proxy.assertNothingRejected();
  });

  it("is an extension we have no descriptor for", async () => {
    const file = httpFilter("shop.cdn", `${type("cdn_loop.v3.CdnLoopConfig")}, cdn_id: shop.example`);
    const newer = httpFilter(
      "shop.key",
      `${type("api_key_auth.v3.ApiKeyAuth")}, credentials: [{key: sesame, client: ali}], key_sources: [{header: x-key}]`,
    );
    const { target, proxy } = await startShop({ http: rule("v1"), istiod: { files: { [FILE]: envoyFilter(file, newer) } } });
    expect((await call(target)).status).toBe(401);
    expect((await call({ ...target, headers: { "x-key": "sesame" } })).by).toBe("v1");
    await proxy.assertNothingRejected();
  });

  it("is a Wasm module that Envoy fetches itself, in either form of configuration", async () => {
    const server = await documentServer();
    server.documents.set("/it.wasm", headerModule("x-module", "it"));
    const sha256 = createHash("sha256").update(headerModule("x-module", "it")).digest("hex");
    const modules = `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: modules, namespace: shop}
spec:
  hosts: [modules.test]
  resolution: STATIC
  location: MESH_EXTERNAL
  ports: [{number: 8099, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: ${server.port}}}]
`;
    const place = `http_uri: {uri: "http://modules.test/it.wasm", cluster: "outbound|8099||modules.test", timeout: 5s}, sha256: ${sha256}`;
    const config = (id: string): string =>
      `config: {root_id: ${id}, vm_config: {vm_id: ${id}, runtime: envoy.wasm.runtime.v8, code: {remote: {${place}}}}}`;
    const struct = `"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm`;
    const filters = envoyFilter(
      httpFilter("shop.typed", `${type("wasm.v3.Wasm")}, ${config("typed")}`),
      httpFilter("shop.struct", `${struct}, value: {${config("struct")}}`),
    );
    const { target, proxy, v1 } = await startShop({ http: rule("v1"), istiod: { files: { [FILE]: filters + modules } } });
    await eventually("both run", async () => {
      await call(target);
      return v1.hits.at(-1)?.headers["x-module"] === "it, it";
    });
    expect(server.asked).toContain("/it.wasm");
    await proxy.assertNothingRejected();
  });

  it("is a route, and a change of clusters and listeners", async () => {
    const route = `{applyTo: HTTP_ROUTE, match: {context: SIDECAR_OUTBOUND}, patch: {operation: INSERT_FIRST, value: {name: teapot, match: {path: /teapot}, direct_response: {status: 418}}}}`;
    const cluster = `{applyTo: CLUSTER, match: {context: SIDECAR_OUTBOUND, cluster: {service: cart.shop.svc.cluster.local}}, patch: {operation: MERGE, value: {circuit_breakers: {thresholds: [{max_requests: 7}]}}}}`;
    const listener = `{applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}, patch: {operation: MERGE, value: {typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, server_name: shop, server_header_transformation: OVERWRITE}}}}`;
    const { target, proxy } = await startShop({ http: rule("v1"), istiod: { files: { [FILE]: envoyFilter(route, cluster, listener) } } });
    expect((await call({ ...target, path: "/teapot" })).status).toBe(418);
    const answer = await call(target);
    expect([answer.by, answer.headers.server]).toEqual(["v1", "shop"]);
    await proxy.assertNothingRejected();
  });
});

describe("EnvoyFilters that are wrong", () => {
  it("leave traffic working and are reported with object, patch and reason, beside others that work", async () => {
    const broken = [
      httpFilter("shop.fault", `${type("fault.v3.HTTPFault")}, max_active_faults: many`),
      httpFilter("shop.limit", `${type("local_ratelimit.v3.LocalRateLimit")}`),
      httpFilter("shop.stats", `"@type": type.googleapis.com/stats.PluginConfig`),
      httpFilter("shop.second", `${type("router.v3.Router")}`),
      `{applyTo: VIRTUAL_HOST, match: {context: SIDECAR_OUTBOUND}, patch: {operation: ADD, value: {name: twin, domains: ["*"], routes: []}}}`,
      `{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: -1s}}}`,
      lua("function envoy_on_request("),
    ];
    const { istiod, v1, target, proxy } = await startShop({
      http: rule("v1"),
      istiod: { files: { [FILE]: envoyFilter(...broken, lua(ADD_HEADER)) } },
    });
    expect((await call(target)).by).toBe("v1");
    expect(v1.hits.at(-1)?.headers["x-lua"]).toBe("yes");
    await proxy.assertNothingRejected();
    const reports = await report(istiod);
    const reasons = reports.map(({ problems }) => problems.map(({ reason }) => reason).join());
    expect(reasons).toEqual([
      expect.stringContaining("max_active_faults"),
      expect.stringContaining("stat_prefix must be set"),
      expect.stringContaining("stats.PluginConfig"),
      expect.stringContaining("must be the last filter"),
      expect.stringContaining("has domain *"),
      expect.stringContaining("connect_timeout"),
      expect.stringContaining("default_source_code.inline_string is not a script in Lua"),
      "",
    ]);
    expect(reports.map(({ applied }) => applied > 0)).toEqual([...broken.map(() => false), true]);
  });

  it("are told from those that find nothing", async () => {
    const elsewhere = lua(ADD_HEADER).replace("{listener: {", "{listener: {portNumber: 1, ");
    const { istiod, v1, target } = await startShop({ http: rule("v1"), istiod: { files: { [FILE]: envoyFilter(elsewhere) } } });
    expect((await call(target)).by).toBe("v1");
    expect(v1.hits.at(-1)?.headers["x-lua"]).toBeUndefined();
    expect(await report(istiod)).toMatchObject([{ proxies: 1, matched: 0, applied: 0, problems: [] }]);
  });

  it("cost nothing but themselves where only Envoy can tell", async () => {
    const broken = lua("error('not today')");
    const { istiod, v1, target, route } = await startShop({ http: rule("v1"), istiod: { files: { [FILE]: envoyFilter(broken) } } });
    expect((await call(target)).by).toBe("v1");
    expect(await report(istiod)).toMatchObject([
      { problems: [{ reason: expect.stringMatching(/Envoy refused it: .*script load error.*not today/s) }] },
    ]);
    await route(rule("v2"), async () => (await call(target)).by === "v2");
    await istiod.write(FILE, envoyFilter(lua(ADD_HEADER)));
    await route(rule("v1"), async () => (await call(target)).by === "v1" && v1.hits.at(-1)?.headers["x-lua"] === "yes");
    expect(await report(istiod)).toMatchObject([{ problems: [] }]);
    await istiod.write(FILE, envoyFilter(broken));
    await eventually("the refusal is reported", async () => (await report(istiod))[0]?.problems.length === 1);
    expect((await call(target)).by).toBe("v1");
    expect(v1.hits.at(-1)?.headers["x-lua"], "the last good version stays").toBe("yes");
  });
});
