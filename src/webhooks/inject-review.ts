import { injectPod } from "../inject/inject-pod.ts";
import type { InjectionRequest, InjectionSettings } from "../inject/injection-request.ts";
import { jsonPatch } from "../inject/json-patch.ts";
import type { NativeDecision } from "../inject/native-sidecars.ts";
import { ownerOfPod } from "../inject/owner.ts";
import { isFields, type Pod, podName } from "../inject/pod.ts";
import { decideInjection } from "../inject/policy.ts";
import { forgetSharedUser, proxyUser } from "../inject/proxy-user.ts";
import { PodShapeError, readPod } from "../inject/read-pod.ts";
import type { AdmissionAnswer, AdmissionRequest } from "./admission-review.ts";

/** What injection needs to know of the cluster. */
export interface InjectionWorld {
  settings(): InjectionSettings;
  /** Whether the pod's node, or where it has none yet every node, runs native sidecars. */
  native(nodeName: string | undefined): NativeDecision;
  proxyConfigs(namespace: string, labels: Readonly<Record<string, string>>): InjectionRequest["proxyConfigs"];
  /** Annotations of a namespace where the platform is OpenShift; otherwise undefined. */
  openShift(namespace: string): Readonly<Record<string, string>> | undefined;
}

/** What became of a pod, for those who count and log. */
export interface InjectionOutcome {
  readonly answer: AdmissionAnswer;
  readonly outcome: "injected" | "skipped" | "failed";
  readonly pod: string;
  /** Why it was skipped or failed, or how it was decided. */
  readonly reason: string;
}

/** Injects the pod of a review. `path` is that of the request: it may carry cluster and network. */
export function injectReview(request: AdmissionRequest, path: string, world: InjectionWorld): InjectionOutcome {
  const title = `${request.namespace}/${request.name}`;
  if (request.operation === "DELETE" || request.kind.kind !== "Pod" || request.kind.group !== "")
    return { answer: { allowed: true }, outcome: "skipped", pod: title, reason: "it is no new pod" };
  let pod: Pod;
  try {
    pod = readPod(withoutManagedFields(request.object));
  } catch (error) {
    if (!(error instanceof PodShapeError)) throw error;
    return failed(title, [error.message]);
  }
  const namespace = pod.metadata.namespace || request.namespace;
  const name = `${namespace}/${podName(pod.metadata)}`;
  const settings = world.settings();
  const decision = decideInjection(pod, namespace, settings.config);
  if (!decision.inject)
    return { answer: { allowed: true, audit: `not injected: ${decision.reason}` }, outcome: "skipped", pod: name, reason: decision.reason };
  const original = structuredClone(pod);
  const { native, reason } = world.native(pod.spec.nodeName);
  const openShift = world.openShift(namespace);
  if (openShift !== undefined) forgetSharedUser(pod);
  const result = injectPod(
    {
      pod,
      namespace,
      owner: ownerOfPod(pod, namespace),
      native,
      proxyConfigs: world.proxyConfigs(namespace, pod.metadata.labels ?? {}),
      variables: pathVariables(path),
      user: proxyUser(openShift),
    },
    settings,
  );
  if ("faults" in result) return failed(name, result.faults);
  const why = `${decision.reason}; ${native ? "a native sidecar" : "no native sidecar"}: ${reason}`;
  const answer = {
    allowed: true,
    patch: jsonPatch(original, result.pod),
    warnings: [...warningsOf(pod), ...result.warnings],
    audit: `injected: ${why}`,
  };
  return { answer, outcome: "injected", pod: name, reason: why };
}

const failed = (pod: string, faults: readonly string[]): InjectionOutcome => ({
  answer: { allowed: false, message: `the sidecar cannot be injected: ${faults.join("; ")}` },
  outcome: "failed",
  pod,
  reason: faults.join("; "),
});

/** They can be larger than all the rest, and say nothing about the pod. */
function withoutManagedFields(object: unknown): unknown {
  if (!isFields(object) || !isFields(object.metadata)) return object;
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function warningsOf({ spec, metadata }: Pod): readonly string[] {
  const { labels = {}, annotations = {} } = metadata;
  const word = labels["sidecar.istio.io/inject"] ?? annotations["sidecar.istio.io/inject"];
  return [
    ...(spec.dnsPolicy !== undefined && spec.dnsPolicy !== "ClusterFirst"
      ? [`dnsPolicy is ${spec.dnsPolicy}: the sidecar may not find istiod, which it looks for by the cluster's DNS`]
      : []),
    ...(word !== undefined && word !== "true" && word !== "false"
      ? [`sidecar.istio.io/inject is ${JSON.stringify(word)}: only "true" and "false" count, so the default was taken`]
      : []),
  ];
}

const KNOWN: Readonly<Record<string, string>> = { cluster: "ISTIO_META_CLUSTER_ID", net: "ISTIO_META_NETWORK" };
const VARIABLE = /^[A-Z_][A-Z0-9_.-]{0,100}$/;

/** `/inject/cluster/c1/net/n1`: variables of the proxy, for pods of a cluster other than the control plane's. `--slash--` stands for a slash. */
export function pathVariables(path: string): Readonly<Record<string, string>> {
  const parts = path.replace(/\/$/, "").split("/").slice(2);
  const variables: Record<string, string> = {};
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const key = parts[at] ?? "";
    const name = Object.hasOwn(KNOWN, key) ? (KNOWN[key] ?? "") : key.toUpperCase();
    if (VARIABLE.test(name)) variables[name] = decoded(parts[at + 1] ?? "").replaceAll("--slash--", "/");
  }
  return variables;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
