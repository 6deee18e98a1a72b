import { placeOf } from "../config/checks/place.ts";
import type { Report } from "../config/kind-def.ts";
import { defaultProxyConfig, withProxyDefaults } from "../config/mesh/defaults.ts";
import { canonicalKeys, type JsonMap, mergeMaps } from "../config/mesh/merge-layers.ts";
import { readYaml } from "../config/mesh/read-yaml.ts";
import { validateProxyConfig } from "../config/mesh/validate-proxy-config.ts";
import { readMessage } from "../config/parse/read-message.ts";
import { type FieldPath, formatPath, levelOf } from "../config/problem.ts";
import type { MeshConfig } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type ProxyConfig, ProxyConfigSchema } from "../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import type { ProxyConfig as ProxyConfigObject } from "../gen/istio/networking/v1beta1/proxy_config_pb.js";
import { ANNOTATION } from "./annotations.ts";
import { isFields } from "./pod.ts";

/** ProxyConfig of one pod. */
export interface ProxyConfigLayers {
  /** With the mesh's defaults below. */
  readonly effective: ProxyConfig;
  /** What was said for this pod in particular, as JSON. */
  readonly own: JsonMap;
  /** What of that has no effect: a sentence each. */
  readonly warnings: readonly string[];
}

/**
 * Puts ProxyConfig objects and the pod's annotation `proxy.istio.io/config` over the mesh's `defaultConfig`. Gives sentences where the annotation is
 * no ProxyConfig: a pod that would run otherwise than its author thinks is better refused. Fields nobody knows, though, are left out with a warning:
 * annotations outlive fields, and a pod that ran until yesterday must come up.
 */
export function proxyConfigLayers(
  mesh: MeshConfig,
  objects: readonly ProxyConfigObject[],
  annotation: string | undefined,
): ProxyConfigLayers | readonly string[] {
  const faults: string[] = [];
  const unknown: { readonly path: FieldPath; readonly sentence: string }[] = [];
  const report: Report = (code, path, message) => {
    const sentence = `annotation ${ANNOTATION.proxyConfig}: ${path.length === 0 ? "" : `${formatPath(path)}: `}${message}`;
    if (code === "schema.unknown-field") unknown.push({ path: [...path], sentence });
    else if (levelOf(code) === "error") faults.push(sentence);
  };
  const said = annotation === undefined ? {} : annotationJson(annotation, report);
  const written = [...objects.map(objectJson), said].reduce((base, over) => mergeMaps(base, over, ProxyConfigSchema), {});
  const message = readMessage(ProxyConfigSchema, written, { report, path: [] });
  const own = unknown.reduce<JsonMap>((json, { path }) => withoutField(json, path), written);
  const effective = withProxyDefaults(mesh.defaultConfig ?? defaultProxyConfig(), { message, json: own });
  if (annotation !== undefined && faults.length === 0) validateProxyConfig(effective, placeOf(report, []));
  return faults.length > 0 ? faults : { effective, own, warnings: unknown.map(({ sentence }) => sentence) };
}

function withoutField(json: JsonMap, [step, ...rest]: FieldPath): JsonMap {
  if (step === undefined) return json;
  const { [step]: below, ...others } = json;
  if (rest.length === 0) return others;
  return isFields(below) ? { ...others, [step]: withoutField(below, rest) } : json;
}

function annotationJson(text: string, report: Report): JsonMap {
  const read = readYaml(text);
  if (!read.ok || !isFields(read.value)) {
    report("document.unreadable", [], read.ok ? "must be an object" : read.message);
    return {};
  }
  return canonicalKeys(read.value, ProxyConfigSchema);
}

const objectJson = ({ concurrency, environmentVariables, image }: ProxyConfigObject): JsonMap => ({
  ...(concurrency !== undefined && { concurrency }),
  ...(Object.keys(environmentVariables).length > 0 && { proxyMetadata: environmentVariables }),
  ...(image !== undefined && image.imageType !== "" && { image: { imageType: image.imageType } }),
});
