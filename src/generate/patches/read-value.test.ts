import assert from "node:assert/strict";
import { type DescMessage, type JsonObject, toJson } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import { RouteSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { HttpFilterSchema } from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { messageRegistry } from "../../wire/json.ts";
import { readValue } from "./read-value.ts";

const registry = await messageRegistry();
const T = "type.googleapis.com/envoy.extensions.filters.http";

const BUFFER = { type: "envoy.extensions.filters.http.buffer.v3.Buffer", kind: "envoy.filters.http" };

const read = (typed_config: JsonObject, { merging = false, schema = HttpFilterSchema as DescMessage } = {}) => {
  const value = readValue(schema, { name: "f", typed_config }, { registry, merging });
  return { ...value, config: (toJson(schema, value.message, { registry }) as JsonObject).typedConfig };
};

describe("readValue", () => {
  it("makes messages of types we have descriptors for, in either spelling of fields", () => {
    const { config, faults, needs } = read({ "@type": `${T}.buffer.v3.Buffer`, max_request_bytes: 5 });
    assert.deepEqual(config, { "@type": `${T}.buffer.v3.Buffer`, maxRequestBytes: 5 });
    assert.deepEqual([faults, needs], [[], [BUFFER]]);
    assert.deepEqual(read({ "@type": `${T}.buffer.v3.Buffer`, maxRequestBytes: 5 }).config, config);
  });

  it("passes others on as JSON", () => {
    const { config } = read({ "@type": `${T}.tomorrow.v3.Tomorrow`, a: { b: ["1s"] } });
    assert.deepEqual(config, {
      "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
      typeUrl: `${T}.tomorrow.v3.Tomorrow`,
      value: { a: { b: ["1s"] } },
    });
  });

  it("passes on fields that are newer than our descriptors, but judges the others", () => {
    const newer = { "@type": `${T}.buffer.v3.Buffer`, max_request_bytes: 5, brand_new: true };
    assert.deepEqual(read(newer).config, {
      "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
      typeUrl: `${T}.buffer.v3.Buffer`,
      value: { brand_new: true, max_request_bytes: 5 },
    });
    assert.deepEqual(read({ ...newer, max_request_bytes: "many" }).faults, [
      "typed_config.max_request_bytes must be a whole number, not a text",
    ]);
    assert.deepEqual(read({ ...newer, max_request_bytes: 0 }).faults, ["typed_config.max_request_bytes must be more than 0"]);
  });

  it("leaves such fields out where it must merge, and says so", () => {
    const { config, notes } = read({ "@type": `${T}.buffer.v3.Buffer`, max_request_bytes: 5, brand_new: true }, { merging: true });
    assert.deepEqual(config, { "@type": `${T}.buffer.v3.Buffer`, maxRequestBytes: 5 });
    assert.deepEqual(notes, ['typed_config.brand_new: Buffer has no field "brand_new"; it is left out']);
  });

  it("takes a TypedStruct as it is written, or as what it stands for where it must merge", () => {
    const struct = {
      "@type": "type.googleapis.com/udpa.type.v1.TypedStruct",
      type_url: `${T}.buffer.v3.Buffer`,
      value: { max_request_bytes: 5 },
    };
    assert.deepEqual(read(struct).config, { "@type": struct["@type"], typeUrl: struct.type_url, value: { max_request_bytes: 5 } });
    assert.deepEqual(read(struct, { merging: true }).config, { "@type": `${T}.buffer.v3.Buffer`, maxRequestBytes: 5 });
    assert.deepEqual(read(struct).needs, [BUFFER]);
  });

  it("reads what is inside other configurations", () => {
    const inner = { name: "x", typed_config: { "@type": `${T}.buffer.v3.Buffer`, max_request_bytes: "no" } };
    const { faults, needs } = read({ "@type": `${T}.router.v3.Router`, upstream_http_filters: [inner] });
    assert.deepEqual(faults, ["typed_config.upstream_http_filters[0].typed_config.max_request_bytes must be a whole number, not a text"]);
    assert.deepEqual(needs, [{ type: "envoy.extensions.filters.http.router.v3.Router", kind: "envoy.filters.http" }, BUFFER]);
  });

  const WRONG = "is not a script in Lua that Envoy takes: line 2: unexpected end of the script";
  const [good, bad] = ["a =\n1", "a =\n"];
  const scripts: readonly (readonly [path: string, config: (source: string) => JsonObject])[] = [
    ["inline_code", (inline_code) => ({ "@type": `${T}.lua.v3.Lua`, inline_code })],
    ["default_source_code.inline_string", (source) => ({ "@type": `${T}.lua.v3.Lua`, default_source_code: { inline_string: source } })],
    [
      "default_source_code.inline_bytes",
      (source) => ({ "@type": `${T}.lua.v3.Lua`, default_source_code: { inline_bytes: Buffer.from(source).toString("base64") } }),
    ],
    ["source_codes.x.inline_string", (source) => ({ "@type": `${T}.lua.v3.Lua`, source_codes: { x: { inline_string: source } } })],
    ["source_code.inline_string", (source) => ({ "@type": `${T}.lua.v3.LuaPerRoute`, source_code: { inline_string: source } })],
    [
      "source_code.inline_string",
      (source) => ({
        "@type": "type.googleapis.com/envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig",
        source_code: { inline_string: source },
      }),
    ],
    [
      "source_code.inline_string",
      (source) => ({
        "@type": "type.googleapis.com/envoy.extensions.string_matcher.lua.v3.Lua",
        source_code: { inline_string: source },
      }),
    ],
    [
      "inline_code",
      (inline_code) => ({
        "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
        type_url: `${T}.lua.v3.Lua`,
        value: { inline_code },
      }),
    ],
  ];
  for (const [path, config] of scripts)
    it(`judges the script of ${config("")["@type"]} at ${path}`, () => {
      for (const merging of [false, true]) {
        assert.deepEqual(read(config(good), { merging }).faults, []);
        assert.deepEqual(read(config(bad), { merging }).faults, [`typed_config.${path} ${WRONG}`]);
      }
    });

  it("leaves scripts of files to the proxy", () => {
    assert.deepEqual(read({ "@type": `${T}.lua.v3.Lua`, default_source_code: { filename: "/a.lua" } }).faults, []);
  });

  it("knows which kind of extension is looked for in which place", () => {
    const options = { registry, merging: false };
    const cors = { "@type": `${T}.cors.v3.CorsPolicy` };
    const [filter, route] = ["envoy.filters.", "envoy.filters.http"].map((kind) => ({
      type: "envoy.extensions.filters.http.cors.v3.CorsPolicy",
      kind,
    }));
    assert.deepEqual(readValue(TypedExtensionConfigSchema, { name: "f", typed_config: cors }, options).needs, [filter]);
    assert.deepEqual(readValue(RouteSchema, { typed_per_filter_config: { f: cors } }, options).needs, [route]);
  });

  const held = { name: "e", typed_config: { "@type": `${T}.cors.v3.CorsPolicy` } };
  const table: readonly (readonly [schema: DescMessage, fields: JsonObject, kind: string | undefined])[] = [
    [RouteSchema, { route: { internal_redirect_policy: { predicates: [held] } } }, "envoy.internal_redirect_predicates"],
    [RouteSchema, { route: { earlyDataPolicy: held } }, "envoy.route.early_data_policy"],
    [RouteSchema, { route: { rate_limits: [{ actions: [{ extension: held }] }] } }, "envoy.rate_limit_descriptors"],
    [RouteSchema, { route: { retry_policy: { retry_host_predicate: [held] } } }, "envoy.retry_host_predicates"],
    [RouteSchema, { route: { inline_cluster_specifier_plugin: { extension: held } } }, "envoy.router.cluster_specifier_plugin"],
    [ClusterSchema, { load_balancing_policy: { policies: [{ typed_extension_config: held }] } }, "envoy.load_balancing_policies"],
    [ClusterSchema, { filters: [held] }, "envoy.filters.upstream_network"],
    [ClusterSchema, { metadata: { typed_filter_metadata: { e: held.typed_config } } }, undefined],
  ];
  for (const [schema, fields, kind] of table)
    it(`knows it in ${JSON.stringify(Object.values(fields)).slice(0, 60)}`, () => {
      const [need] = readValue(schema, fields, { registry, merging: false }).needs;
      assert.deepEqual(need, { type: "envoy.extensions.filters.http.cors.v3.CorsPolicy", kind });
    });
});
