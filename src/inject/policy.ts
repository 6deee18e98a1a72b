import { conditionFault, type LabelSelector, type Labels, selectsLabels } from "../base/labels.ts";
import { ANNOTATION, LABEL } from "./annotations.ts";
import type { InjectionConfig } from "./injection-config.ts";
import type { Pod } from "./pod.ts";

/** Whether a pod gets a sidecar, and why: the reason is logged and shown by `istioctl kube-inject`. */
export interface Decision {
  readonly inject: boolean;
  readonly reason: string;
}

/** Namespaces of Kubernetes itself; nothing in them is ever injected. */
export const SYSTEM_NAMESPACES: readonly string[] = ["kube-system", "kube-public", "kube-node-lease", "local-path-storage"];

/**
 * Decides for one pod. The namespace has been decided by the webhook's selectors already (or by the user of `kube-inject`); `config.policy` says
 * what holds where the pod says nothing. The order is Istio's: host network, system namespaces, the pod's own word, never, always, policy.
 */
export function decideInjection(pod: Pod, namespace: string, config: InjectionConfig): Decision {
  const { labels = {}, annotations = {} } = pod.metadata;
  if (pod.spec.hostNetwork === true) return no("it uses the network of its host, where interception would redirect the whole node");
  if (SYSTEM_NAMESPACES.includes(namespace)) return no(`namespace ${namespace} belongs to Kubernetes`);
  const [where, word] =
    LABEL.inject in labels ? (["label", labels[LABEL.inject]] as const) : (["annotation", annotations[ANNOTATION.inject]] as const);
  if (word === "true") return yes(`its ${where} ${LABEL.inject} is true`);
  if (word === "false") return no(`its ${where} ${LABEL.inject} is false`);
  if (config.neverInjectSelector.some((selector) => takes(selector, labels))) return no("its labels match neverInjectSelector");
  if (config.alwaysInjectSelector.some((selector) => takes(selector, labels))) return yes("its labels match alwaysInjectSelector");
  return config.policy === "enabled" ? yes("injection is on by default") : no("injection is off by default");
}

const yes = (reason: string): Decision => ({ inject: true, reason });
const no = (reason: string): Decision => ({ inject: false, reason });

/** An empty selector takes nothing here, nor does one that is wrong: it would silently inject everything. */
const takes = (selector: LabelSelector, labels: Labels): boolean =>
  (Object.keys(selector.matchLabels).length > 0 || selector.matchExpressions.length > 0) &&
  selector.matchExpressions.every((condition) => conditionFault(condition) === undefined) &&
  selectsLabels(selector, labels);

/**
 * Whether a namespace, or a pod in an unlabelled one, asks for injection by this revision: what the selectors of our webhook configurations
 * say, for those who have no API server to ask. `revisions` are the revision and the tags that point to it.
 */
export function revisionSelects(namespaceLabels: Labels, podLabels: Labels, revisions: readonly string[]): boolean {
  if (podLabels[LABEL.inject] === "false") return false;
  const injection = namespaceLabels["istio-injection"];
  const wanted = namespaceLabels[LABEL.revision];
  const isDefault = revisions.includes("default");
  if (injection !== undefined) return injection === "enabled" && isDefault;
  if (wanted !== undefined) return revisions.includes(wanted);
  const own = podLabels[LABEL.revision];
  if (own !== undefined) return revisions.includes(own);
  return isDefault && podLabels[LABEL.inject] === "true";
}
