import { type Fields, isFields, type Pod } from "./pod.ts";

/** Where the shape of a pod is not what Kubernetes lets through: a sentence with the path. */
export class PodShapeError extends Error {
  override readonly name = "PodShapeError";
}

const PROBES = ["readinessProbe", "livenessProbe", "startupProbe", "lifecycle", "securityContext", "resources"];
const LISTS = ["env", "ports", "volumeMounts"];

/**
 * Takes a value for a pod after looking at every field that injection touches; the others are not judged, since a newer API server may
 * know more of them than we do. Gives a copy of its own. Throws `PodShapeError`.
 */
export function readPod(value: unknown): Pod {
  const pod = structuredClone(fieldsAt(value, "the pod"));
  const metadata = fieldsAt(pod.metadata ?? {}, "metadata");
  const spec = fieldsAt(pod.spec, "spec");
  for (const name of ["labels", "annotations"]) textsAt(metadata, name, `metadata.${name}`);
  for (const name of ["name", "generateName", "namespace"]) textAt(metadata, name, `metadata.${name}`);
  for (const name of ["nodeName", "serviceAccountName", "dnsPolicy"]) textAt(spec, name, `spec.${name}`);
  listAt(metadata, "ownerReferences", "metadata.ownerReferences");
  for (const name of ["containers", "initContainers"]) {
    for (const [index, container] of listAt(spec, name, `spec.${name}`).entries()) containerAt(container, `spec.${name}[${index}]`);
  }
  for (const name of ["volumes", "imagePullSecrets"]) {
    for (const [index, item] of listAt(spec, name, `spec.${name}`).entries()) nameAt(item, `spec.${name}[${index}]`);
  }
  return { ...pod, metadata, spec } as Pod;
}

function containerAt(container: Fields, path: string): void {
  nameAt(container, path);
  textAt(container, "image", `${path}.image`);
  for (const name of LISTS) listAt(container, name, `${path}.${name}`);
  for (const name of PROBES) if (present(container[name])) fieldsAt(container[name], `${path}.${name}`);
  for (const [index, one] of (container.env as Fields[] | undefined)?.entries() ?? []) nameAt(one, `${path}.env[${index}]`);
  // Lists are merged by these: what is neither text nor number is never the same as its copy, and would be added again and again.
  for (const [index, one] of (container.volumeMounts as Fields[] | undefined)?.entries() ?? [])
    textAt(one, "mountPath", `${path}.volumeMounts[${index}].mountPath`);
  for (const [index, one] of (container.ports as Fields[] | undefined)?.entries() ?? [])
    if (present(one.containerPort) && typeof one.containerPort !== "number")
      throw new PodShapeError(`${path}.ports[${index}].containerPort must be a number`);
  for (const name of ["args", "command"]) {
    const list = container[name];
    if (present(list) && !(Array.isArray(list) && list.every((word) => typeof word === "string")))
      throw new PodShapeError(`${path}.${name} must be a list of texts`);
  }
}

const present = (value: unknown): boolean => value !== undefined && value !== null;

function fieldsAt(value: unknown, path: string): Fields {
  if (!isFields(value)) throw new PodShapeError(`${path} must be an object`);
  return value;
}

function nameAt(item: Fields, path: string): void {
  if (typeof item.name !== "string" || item.name === "") throw new PodShapeError(`${path}.name must be set, to a text`);
}

/** A null means nothing, and is dropped so that nobody else has to think of it. */
function textAt(parent: Fields, name: string, path: string): void {
  const value = parent[name];
  if (!present(value)) delete parent[name];
  else if (typeof value !== "string") throw new PodShapeError(`${path} must be a text`);
}

function textsAt(parent: Fields, name: string, path: string): void {
  const value = parent[name];
  if (!present(value)) {
    delete parent[name];
    return;
  }
  for (const [key, text] of Object.entries(fieldsAt(value, path)))
    if (typeof text !== "string") throw new PodShapeError(`${path}: the value of ${key} must be a text; put it in quotes`);
}

function listAt(parent: Fields, name: string, path: string): readonly Fields[] {
  const value = parent[name];
  if (!present(value)) {
    delete parent[name];
    return [];
  }
  if (!Array.isArray(value)) throw new PodShapeError(`${path} must be a list`);
  return value.map((item, index) => fieldsAt(item, `${path}[${index}]`));
}
