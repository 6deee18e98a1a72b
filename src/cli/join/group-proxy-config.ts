import { type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { EdgeError } from "../../base/errors.ts";
import { defaultProxyConfig } from "../../config/mesh/defaults.ts";
import { mergeMaps } from "../../config/mesh/merge-layers.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { MeshConfig } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { ProxyConfigSchema } from "../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import type { WorkloadGroup } from "../../gen/istio/networking/v1alpha3/workload_group_pb.js";
import { ANNOTATION } from "../../inject/annotations.ts";
import { type ProxyConfigLayers, proxyConfigLayers } from "../../inject/proxy-config-layers.ts";

/** ProxyConfig of the members of a WorkloadGroup. */
export interface GroupProxyConfig {
  /** The mesh's `defaultConfig` with the group's own over it, as far as it is not Istio's default. */
  readonly whole: JsonObject;
  /** What the group says itself: the annotation `proxy.istio.io/config`. */
  readonly own: JsonObject;
  /** Variables of the machine: `proxyMetadata` of both. */
  readonly variables: Readonly<Record<string, string>>;
  readonly statusPort: number;
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Puts the group's annotations over the mesh's `defaultConfig`, those of the object first and those of its members over them, as Istio does. Throws
 * `EdgeError` where one is no ProxyConfig. Probes of the mesh are left out: what runs on a machine is said for the machine.
 */
export function groupProxyConfig(mesh: MeshConfig, group: ConfigObject<WorkloadGroup>): GroupProxyConfig {
  const ofObject = layersOf(mesh, group.annotations);
  const { effective, own } = layersOf({ ...mesh, defaultConfig: ofObject.effective }, group.spec.metadata?.annotations ?? {});
  const said = mergeMaps(ofObject.own, own, ProxyConfigSchema) as JsonObject;
  const { proxyMetadata: _, readinessProbe: __, ...whole } = withoutDefaults(toJson(ProxyConfigSchema, effective) as JsonObject);
  for (const [name, value] of Object.entries(effective.proxyMetadata))
    if (!VARIABLE.test(name) || value.includes("\n"))
      throw new EdgeError("mesh_config_invalid", `proxyMetadata: ${JSON.stringify(name)} cannot be a variable of the machine`);
  return {
    whole: { ...whole, ...(said.readinessProbe !== undefined && { readinessProbe: said.readinessProbe }) },
    own: said,
    variables: effective.proxyMetadata,
    statusPort: effective.statusPort,
  };
}

function layersOf(mesh: MeshConfig, annotations: Readonly<Record<string, string>>): ProxyConfigLayers {
  const layers = proxyConfigLayers(mesh, [], annotations[ANNOTATION.proxyConfig]);
  if (!("effective" in layers)) throw new EdgeError("mesh_config_invalid", `the WorkloadGroup's ${layers.join("; ")}`);
  return layers;
}

function withoutDefaults(config: JsonObject): JsonObject {
  const defaults = toJson(ProxyConfigSchema, defaultProxyConfig()) as JsonObject;
  const same = (a: JsonValue | undefined, b: JsonValue): boolean => JSON.stringify(a) === JSON.stringify(b);
  return Object.fromEntries(Object.entries(config).filter(([name, value]) => !same(defaults[name], value)));
}
