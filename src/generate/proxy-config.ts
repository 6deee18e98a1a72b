import { fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import type { MeshConfig } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type ProxyConfig, ProxyConfigSchema } from "../gen/istio/mesh/v1alpha1/proxy_config_pb.js";

/** Node metadata PROXY_CONFIG, even an empty one, takes the place of the mesh's `defaultConfig` as a whole, as in Istio. */
export function proxyConfigOf(mesh: MeshConfig | undefined, json: string): ProxyConfig | undefined {
  if (json === "") return mesh?.defaultConfig;
  try {
    return fromJson(ProxyConfigSchema, JSON.parse(json) as JsonValue, { ignoreUnknownFields: true });
  } catch {
    return mesh?.defaultConfig;
  }
}

/** Keeps the named fields of node metadata PROXY_CONFIG (as JSON), so that proxies which differ elsewhere in it still share what is made from these. */
export function narrowedProxyConfig(json: string, fields: readonly string[]): string {
  if (json === "") return "";
  const config: unknown = JSON.parse(json);
  if (typeof config !== "object" || config === null) return "";
  const given = config as JsonObject;
  return JSON.stringify(Object.fromEntries(fields.flatMap((field) => (given[field] === undefined ? [] : [[field, given[field]]]))));
}
