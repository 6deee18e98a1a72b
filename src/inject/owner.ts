import type { Fields, Pod } from "./pod.ts";

/** The workload that a pod belongs to, as Istio names it in telemetry. */
export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
}

const CRON_JOB = /^(.+)-\d{8,10}$/;

/** Finds the workload of a pod from its controller: a ReplicaSet stands for its Deployment, a Job of a CronJob for that. */
export function ownerOfPod({ metadata }: Pod, namespace: string): Owner {
  const labels = metadata.labels ?? {};
  const self = { apiVersion: "v1", kind: "Pod", name: metadata.name ?? "", namespace };
  const controller = metadata.ownerReferences?.find((reference: Fields) => reference.controller === true);
  if ((metadata.generateName ?? "") === "" || controller === undefined) return self;
  const owner = { apiVersion: text(controller.apiVersion), kind: text(controller.kind), name: text(controller.name), namespace };
  const hash = labels["pod-template-hash"] ?? "";
  const rollout = labels["rollouts-pod-template-hash"] ?? "";
  if (owner.kind === "ReplicaSet" && hash !== "" && owner.name.endsWith(`-${hash}`))
    return { ...owner, kind: "Deployment", name: owner.name.slice(0, -hash.length - 1) };
  if (owner.kind === "ReplicaSet" && rollout !== "" && owner.name.endsWith(`-${rollout}`))
    return { ...owner, apiVersion: "v1alpha1", kind: "Rollout", name: owner.name.slice(0, -rollout.length - 1) };
  if (owner.kind === "ReplicationController" && (labels.deploymentconfig ?? "") !== "")
    return { ...owner, kind: "DeploymentConfig", name: labels.deploymentconfig ?? "" };
  const cron = owner.kind === "Job" ? CRON_JOB.exec(owner.name)?.[1] : undefined;
  return cron === undefined ? owner : { ...owner, apiVersion: "batch/v1", kind: "CronJob", name: cron };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
