import { type TrafficExtension, TrafficExtensionSchema } from "../../../gen/istio/extensions/v1alpha1/traffic_extension_pb.js";
import { scriptFault } from "../../checks/lua/configs.ts";
import type { Place } from "../../checks/place.ts";
import { checkTarget } from "../../checks/target.ts";
import { istioKind } from "../istio-kind.ts";
import { TARGET_RULES } from "../target-rules.ts";
import { checkPorts, checkWasm, wasmRules } from "../wasm-plugin/check-wasm.ts";

const MOST_LUA_BYTES = 65_536;

/** A Lua or WebAssembly filter for the proxies of workloads. */
export const trafficExtension = istioKind({
  kind: "TrafficExtension",
  group: "extensions.istio.io",
  versions: ["v1alpha1"],
  plural: "trafficextensions",
  singular: "trafficextension",
  shortNames: [],
  columns: { Age: ".metadata.creationTimestamp" },
  schema: TrafficExtensionSchema,
  rules: { ...TARGET_RULES, ...wasmRules("wasm."), "match[].ports": { uniqueBy: "number" } },
  needsSpec: true,
  check: checkTrafficExtension,
});

function checkTrafficExtension(spec: TrafficExtension, place: Place): void {
  checkTarget(spec, place);
  checkPorts(spec.match, place.in("match"));
  const { case: kind, value } = spec.filterConfig;
  if (kind === undefined) place.fault("field.required", "give wasm or lua");
  else if (kind === "wasm") checkWasm(value, place.in("wasm"));
  else {
    const [at, size] = [place.in("lua", "inlineCode"), Buffer.byteLength(value.inlineCode)];
    if (size === 0) at.fault("field.required", "must be set");
    else if (size > MOST_LUA_BYTES) at.fault("field.range", `must have at most ${MOST_LUA_BYTES} bytes`);
    else at.check("field.invalid", scriptFault(value.inlineCode));
  }
}
