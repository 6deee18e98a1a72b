import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { withProxyDefaults } from "../config/mesh/defaults.ts";
import { canonicalKeys } from "../config/mesh/merge-layers.ts";
import { readMessage } from "../config/parse/read-message.ts";
import type { MeshConfig } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type ProxyConfig, ProxyConfigSchema } from "../gen/istio/mesh/v1alpha1/proxy_config_pb.js";

/** Marks a PROXY_CONFIG that holds only what the workload says itself (node metadata `PROXY_CONFIG_OVER: mesh`, as our agent sends it). */
const OVER_MESH = "@overMesh";

/** Node metadata PROXY_CONFIG as views carry it. */
export const proxyConfigText = (config: JsonValue | undefined, isOverMesh: boolean): string =>
  config === undefined ? "" : JSON.stringify(isOverMesh && isObject(config) ? { ...config, [OVER_MESH]: true } : config);

/**
 * Node metadata PROXY_CONFIG, even an empty one, takes the place of the mesh's `defaultConfig` as a whole, as in Istio; one that says it is only the
 * workload's own stands over it, field by field.
 */
export function proxyConfigOf(mesh: MeshConfig | undefined, json: string): ProxyConfig | undefined {
  if (json === "") return mesh?.defaultConfig;
  try {
    const parsed = JSON.parse(json) as JsonValue;
    if (!isObject(parsed)) return mesh?.defaultConfig;
    const { [OVER_MESH]: mark, ...own } = parsed;
    // Users write it: durations as Go has them, and a field that is wrong costs none of the others.
    const message = readMessage(ProxyConfigSchema, own, { report: () => {}, path: [], unknownField: "ignore" });
    if (mark !== true) return message;
    return withProxyDefaults(mesh?.defaultConfig, { message, json: canonicalKeys(own, ProxyConfigSchema) });
  } catch {
    return mesh?.defaultConfig;
  }
}

/** Keeps the named fields of node metadata PROXY_CONFIG (as JSON), so that proxies which differ elsewhere in it still share what is made from these. */
export function narrowedProxyConfig(json: string, fields: readonly string[]): string {
  if (json === "") return "";
  const given = JSON.parse(json) as JsonValue;
  if (!isObject(given)) return "";
  const kept = fields.flatMap((field) => (given[field] === undefined ? [] : [[field, given[field]]]));
  const isOverMesh = given[OVER_MESH] === true;
  // With nothing of its own the mesh's holds, as for those who say nothing.
  if (isOverMesh && kept.length === 0) return "";
  return JSON.stringify(Object.fromEntries([...kept, ...(isOverMesh ? [[OVER_MESH, true]] : [])]));
}

const isObject = (value: JsonValue): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);
