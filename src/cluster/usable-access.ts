import { EdgeError, messageOf } from "../base/errors.ts";
import { findKubeAccess, type KubeAccess } from "../kube/kube-access.ts";
import type { ClusterContext } from "../serve/cluster-link.ts";

/**
 * The way to the cluster; undefined where there is none. A kubeconfig that is merely lying around must not keep a control plane from starting on files;
 * one that is asked for must be right.
 */
export async function usableAccess({ env, clock, demanded, log }: ClusterContext): Promise<KubeAccess | undefined> {
  const inPod = (env.KUBERNETES_SERVICE_HOST ?? "") !== "";
  try {
    const access = await findKubeAccess({ env, clock });
    if (access === undefined && demanded)
      throw new EdgeError("kubernetes_unusable", "k8s:// is configured, but there is no cluster", {
        hint: "run in a pod, or set KUBECONFIG to a file that is there",
      });
    return access;
  } catch (error) {
    if (demanded || inPod) throw error;
    log.warn({ reason: messageOf(error) }, "the kubeconfig cannot be used; going on without Kubernetes");
    return undefined;
  }
}
