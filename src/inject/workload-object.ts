import type { Owner } from "./owner.ts";
import { ownerOfPod } from "./owner.ts";
import { type Fields, isFields } from "./pod.ts";
import { readPod } from "./read-pod.ts";

/** An object that makes pods, and where its pod is. */
export interface WorkloadObject {
  readonly kind: string;
  readonly name: string;
  readonly owner: Owner;
  /** Metadata and spec of the pods it makes. */
  readonly pod: { readonly metadata: unknown; readonly spec: unknown };
  /** The object with another pod in it. */
  withPod(pod: { readonly metadata: Fields; readonly spec: Fields }): Fields;
}

/** Kinds with `spec.template`, by their groups; a kind of another group may mean something else by it. OpenShift's first kinds had no group. */
const TEMPLATED: Readonly<Record<string, readonly string[]>> = {
  Deployment: ["apps", "extensions"],
  ReplicaSet: ["apps", "extensions"],
  StatefulSet: ["apps"],
  DaemonSet: ["apps", "extensions"],
  Job: ["batch"],
  ReplicationController: [""],
  DeploymentConfig: ["apps.openshift.io", ""],
};

/** Finds the pod in an object; undefined for one that makes none, or of a kind nobody knows. Throws `PodShapeError` where the pod is none. */
export function workloadObject(object: unknown): WorkloadObject | undefined {
  if (!isFields(object) || typeof object.kind !== "string" || typeof object.apiVersion !== "string") return undefined;
  const { kind, apiVersion } = object;
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  const path = pathOf(kind, group);
  if (path === undefined) return undefined;
  const holder = path.reduce<unknown>((at, step) => (isFields(at) ? at[step] : undefined), object);
  const metadata = isFields(object.metadata) ? object.metadata : {};
  const name = text(metadata.name) || text(metadata.generateName);
  const namespace = text(metadata.namespace);
  const pod = isFields(holder) ? holder : {};
  return {
    kind,
    name,
    owner: kind === "Pod" ? ownerOfPod(readPod(object), namespace) : { apiVersion, kind, name, namespace },
    pod: { metadata: pod.metadata, spec: pod.spec },
    withPod: (changed) => replaced(object, path, { ...pod, ...changed }),
  };
}

function pathOf(kind: string, group: string): readonly string[] | undefined {
  if (kind === "Pod" && group === "") return [];
  if (kind === "CronJob" && group === "batch") return ["spec", "jobTemplate", "spec", "template"];
  return TEMPLATED[kind]?.includes(group) ? ["spec", "template"] : undefined;
}

function replaced(object: Fields, [step, ...rest]: readonly string[], value: Fields): Fields {
  if (step === undefined) return value;
  const below = isFields(object[step]) ? object[step] : {};
  return { ...object, [step]: replaced(below, rest, value) };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
