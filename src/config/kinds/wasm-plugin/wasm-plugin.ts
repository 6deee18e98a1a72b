import { type WasmPlugin, WasmPluginSchema } from "../../../gen/istio/extensions/v1alpha1/wasm_pb.js";
import type { Place } from "../../checks/place.ts";
import { checkTarget } from "../../checks/target.ts";
import { istioKind } from "../istio-kind.ts";
import { TARGET_RULES } from "../target-rules.ts";
import { checkPorts, checkWasm, wasmRules } from "./check-wasm.ts";

/** A WebAssembly filter for the proxies of workloads. */
export const wasmPlugin = istioKind({
  kind: "WasmPlugin",
  group: "extensions.istio.io",
  versions: ["v1alpha1"],
  plural: "wasmplugins",
  singular: "wasmplugin",
  shortNames: [],
  columns: { Age: ".metadata.creationTimestamp" },
  schema: WasmPluginSchema,
  rules: { ...TARGET_RULES, ...wasmRules(""), "match[].ports": { uniqueBy: "number" } },
  needsSpec: true,
  check(spec: WasmPlugin, place: Place): void {
    checkTarget(spec, place);
    checkWasm(spec, place);
    checkPorts(spec.match, place.in("match"));
  },
});
