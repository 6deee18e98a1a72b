import type { ContainerSpec, EnvVar, KeyRef, Pod, ResourceFieldRef, TrustBundleSource } from "./pod.ts";
import { parseQuantity } from "./quantity.ts";

/** What of the world a container's environment may refer to. */
export interface PodFacts {
  readonly pod: Pod;
  readonly podAddress: string;
  readonly nodeAddress: string;
  readonly capacity: Readonly<Record<string, string>>;
  /** Data of a ConfigMap or Secret of the pod's namespace; undefined where there is none. */
  data(kind: "ConfigMap" | "Secret", name: string): Promise<Readonly<Record<string, Buffer>> | undefined>;
  /** The certificates of a ClusterTrustBundle, or of a signer's; undefined where there is none. */
  trustBundle(source: TrustBundleSource): Promise<string | undefined>;
}

/** A container cannot start yet, since something it refers to is not there. */
export class NotThereYet extends Error {
  override readonly name = "NotThereYet";
}

/** The environment of a container, by the rules of Kubernetes: later entries win, and `$(NAME)` refers to earlier ones. */
export async function environmentOf(
  container: ContainerSpec,
  facts: PodFacts,
  base: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const env: Record<string, string> = { ...base };
  for (const { prefix = "", configMapRef, secretRef } of container.envFrom ?? []) {
    const ref = configMapRef ?? secretRef;
    if (ref === undefined) continue;
    const data = await dataOf(facts, configMapRef === undefined ? "Secret" : "ConfigMap", ref);
    for (const [key, value] of Object.entries(data ?? {})) env[prefix + key] = value.toString();
  }
  for (const variable of container.env ?? []) {
    const value = await valueOfVariable(variable, container, facts);
    if (value !== undefined) env[variable.name] = variable.valueFrom === undefined ? expand(value, env) : value;
  }
  return env;
}

/** Replaces `$(NAME)` by what is known and leaves what is not; `$$` stands for one `$`. */
export function expand(text: string, env: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\$|\$\(([^()]+)\)/g, (whole, name: string | undefined) => (name === undefined ? "$" : (env[name] ?? whole)));
}

async function valueOfVariable({ value = "", valueFrom }: EnvVar, container: ContainerSpec, facts: PodFacts): Promise<string | undefined> {
  if (valueFrom === undefined) return value;
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom;
  if (fieldRef !== undefined) return fieldOf(fieldRef.fieldPath, facts);
  if (resourceFieldRef !== undefined) return resourceOf(resourceFieldRef, container, facts);
  if (configMapKeyRef !== undefined) return keyOf(facts, "ConfigMap", configMapKeyRef);
  return secretKeyRef === undefined ? undefined : keyOf(facts, "Secret", secretKeyRef);
}

async function keyOf(facts: PodFacts, kind: "ConfigMap" | "Secret", ref: KeyRef): Promise<string | undefined> {
  const value = (await dataOf(facts, kind, ref))?.[ref.key];
  if (value === undefined && ref.optional !== true) throw new NotThereYet(`couldn't find key ${ref.key} in ${kind} ${ref.name}`);
  return value?.toString();
}

/** Data of what a pod refers to; undefined where it is not there and need not be. */
export async function dataOf(
  facts: PodFacts,
  kind: "ConfigMap" | "Secret",
  { name, optional = false }: { readonly name: string; readonly optional?: boolean },
): Promise<Readonly<Record<string, Buffer>> | undefined> {
  const data = await facts.data(kind, name);
  if (data === undefined && !optional) throw new NotThereYet(`${kind} ${name} not found`);
  return data;
}

/** A field of a pod by its path, e.g. `metadata.labels['app']` or `status.podIP`. */
export function fieldOf(path: string, { pod, podAddress, nodeAddress }: PodFacts): string {
  const { metadata, spec } = pod;
  const [, map, key = ""] = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path) ?? [];
  if (map === "labels" || map === "annotations") return metadata[map]?.[key] ?? "";
  switch (path) {
    case "metadata.name":
      return metadata.name;
    case "metadata.namespace":
      return metadata.namespace ?? "";
    case "metadata.uid":
      return metadata.uid ?? "";
    case "metadata.labels":
    case "metadata.annotations":
      return linesOf(metadata[path === "metadata.labels" ? "labels" : "annotations"] ?? {});
    case "spec.nodeName":
      return spec.nodeName ?? "";
    case "spec.serviceAccountName":
      return spec.serviceAccountName ?? "default";
    case "status.hostIP":
    case "status.hostIPs":
      return nodeAddress;
    case "status.podIP":
    case "status.podIPs":
      return podAddress;
    default:
      throw new Error(`a pod has no field ${path}`);
  }
}

/** As files of the downward API show maps: `key="value"` in order. */
const linesOf = (map: Readonly<Record<string, string>>): string =>
  Object.entries(map)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join("\n");

/** A container's limit or request in units of the divisor, rounded up; what is not limited is the node's. */
export function resourceOf({ resource, divisor, containerName }: ResourceFieldRef, container: ContainerSpec, facts: PodFacts): string {
  const all = [...(facts.pod.spec.initContainers ?? []), ...facts.pod.spec.containers];
  const { resources = {} } = all.find(({ name }) => name === containerName) ?? container;
  const [kind = "", name = ""] = resource.split(".", 2);
  const { limits = {}, requests = {} } = resources;
  const given = kind === "limits" ? (limits[name] ?? facts.capacity[name]) : (requests[name] ?? limits[name]);
  const unit = parseQuantity(divisor === undefined || divisor === "0" ? "1" : divisor);
  return String(Math.ceil(parseQuantity(given ?? "0") / unit));
}
