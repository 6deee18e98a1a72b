/** Where native sidecars are wanted: always, never, or where the nodes can do it. */
export type NativeMode = "auto" | "true" | "false";

/** Whether a pod's proxy is to be a native sidecar, and why. */
export interface NativeDecision {
  readonly native: boolean;
  readonly reason: string;
}

export interface KnownNode {
  readonly name: string;
  /** Version of its kubelet, `v1.34.0`; empty where it does not say. */
  readonly kubelet: string;
}

/** The first Kubernetes whose kubelets keep an init container with `restartPolicy: Always` running, without being asked. */
const FIRST_MINOR = 29;

/**
 * Decides for a pod. In `auto` all nodes must be able to, or the one the pod is bound to; where no node is known, as outside of a cluster, today's
 * Kubernetes is assumed.
 */
export function decideNative(mode: NativeMode, nodes: readonly KnownNode[], boundTo?: string): NativeDecision {
  if (mode !== "auto") return { native: mode === "true", reason: `ENABLE_NATIVE_SIDECARS is ${mode}` };
  const own = nodes.filter(({ name }) => name === boundTo);
  const old = (own.length > 0 ? own : nodes).find(({ kubelet }) => !supportsNativeSidecars(kubelet));
  if (old !== undefined) return { native: false, reason: `node ${old.name} runs Kubernetes ${old.kubelet || "of an unknown version"}` };
  const reason =
    nodes.length === 0 ? "no node is known" : `${own.length > 0 ? "its node runs" : "all nodes run"} Kubernetes 1.${FIRST_MINOR} or newer`;
  return { native: true, reason };
}

/** `v1.34.0-eks-1234` can, `v1.28.0` cannot, and what is no version cannot be known to. */
function supportsNativeSidecars(kubelet: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(kubelet) ?? [];
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= FIRST_MINOR);
}
