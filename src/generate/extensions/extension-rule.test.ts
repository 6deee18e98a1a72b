import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { TrafficExtensionSchema } from "../../gen/istio/extensions/v1alpha1/traffic_extension_pb.js";
import { WasmPluginSchema } from "../../gen/istio/extensions/v1alpha1/wasm_pb.js";
import { type ExtensionObject, extensionRule, wasmInput } from "./extension-rule.ts";

const object = (kind: "WasmPlugin" | "TrafficExtension", json: JsonObject): ExtensionObject =>
  ({
    kind,
    namespace: "shop",
    name: "it",
    hash: "h",
    spec: kind === "WasmPlugin" ? fromJson(WasmPluginSchema, json) : fromJson(TrafficExtensionSchema, json),
  }) as ExtensionObject;

const plugin = (json: JsonObject) => wasmInput(object("WasmPlugin", json));

describe("an extension", () => {
  it("is named after its object, and is Lua, or Wasm for requests or bytes", () => {
    expect(extensionRule(object("WasmPlugin", { url: "x", phase: "AUTHZ", priority: 3 }))).toEqual({
      name: "extensions.istio.io/wasmplugin/shop.it",
      filter: "http",
      phase: "authz",
      priority: 3,
      matches: [],
      code: "wasm",
    });
    expect(extensionRule(object("TrafficExtension", { lua: { inlineCode: "code" } }))).toMatchObject({
      code: { lua: "code" },
      phase: "none",
    });
    expect(extensionRule(object("TrafficExtension", { wasm: { url: "x", type: "NETWORK" } }))).toMatchObject({
      filter: "network",
      code: "wasm",
    });
  });

  it.each([
    ["file:///opt/it.wasm", { file: "/opt/it.wasm" }],
    ["https://files.test/it.wasm", { url: "https://files.test/it.wasm", sha256: "" }],
    ["oci://images.test/it:v1", { url: "oci://images.test/it:v1", sha256: "" }],
    ["images.test/it:v1", { url: "oci://images.test/it:v1", sha256: "" }],
  ])("is found at %s", (url, code) => expect(plugin({ url })?.code).toEqual(code));

  it("is told what the agent needs, and the module what it asks for; equal settings are equal text", () => {
    const told = plugin({
      url: "images.test/it",
      imagePullSecret: "pull",
      imagePullPolicy: "Always",
      pluginConfig: { b: 1, a: 2 },
      vmConfig: {
        env: [
          { name: "A", value: "b" },
          { name: "HOME", valueFrom: "HOST" },
        ],
      },
    });
    expect(told).toMatchObject({ configuration: '{"a":2,"b":1}', hostEnvironment: ["HOME"] });
    expect(told?.environment).toEqual({
      ISTIO_META_WASM_IMAGE_PULL_SECRET: "kubernetes://shop/pull",
      ISTIO_META_WASM_IMAGE_PULL_POLICY: "Always",
      ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION: "h",
      A: "b",
    });
    expect(wasmInput(object("TrafficExtension", { lua: { inlineCode: "" } }))).toBeUndefined();
  });
});
