import type { KubeClient } from "../kube-client.ts";
import type { Pod } from "./pod.ts";

export interface SchedulerNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * The node for a pod: one that its selector and, for a DaemonSet's pod, its affinity allow, with the fewest pods. Taints, resources and other
 * affinities are not looked at.
 */
export function chooseNode(pod: Pod, nodes: readonly SchedulerNode[], pods: readonly Pod[]): string | undefined {
  const { nodeSelector = {}, affinity } = pod.spec;
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const named = terms.flatMap(({ matchFields = [] }) => matchFields.flatMap(({ values = [] }) => values));
  const fitting = nodes.filter(
    ({ name, labels }) =>
      Object.entries(nodeSelector).every(([key, value]) => labels[key] === value) && (named.length === 0 || named.includes(name)),
  );
  const load = (name: string): number => pods.filter(({ spec }) => spec.nodeName === name).length;
  return fitting.map(({ name }) => ({ name, load: load(name) })).sort((a, b) => a.load - b.load)[0]?.name;
}

/** Whether a pod waits for a scheduler such as ours. */
export const needsNode = ({ spec, metadata }: Pod): boolean =>
  spec.nodeName === undefined &&
  metadata.deletionTimestamp === undefined &&
  (spec.schedulingGates ?? []).length === 0 &&
  (spec.schedulerName ?? "default-scheduler") === "default-scheduler";

/** Puts a pod on a node. */
export async function bindPod({ api }: KubeClient, { metadata }: Pod, node: string): Promise<void> {
  const { name, namespace = "default" } = metadata;
  await api.call({
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/pods/${name}/binding`,
    body: { apiVersion: "v1", kind: "Binding", metadata: { name, namespace }, target: { apiVersion: "v1", kind: "Node", name: node } },
  });
}
