import type { Labels } from "../../base/labels.ts";
import type { PolicyTargetReference } from "../../gen/istio/type/v1beta1/selector_pb.js";

/** What of a reference names its target. */
export type TargetName = Pick<PolicyTargetReference, "group" | "kind" | "name">;

/** Where a policy with targets stands, and the workload that may be one. */
export interface Targeting {
  readonly policyNamespace: string;
  readonly rootNamespace: string;
  readonly workload: { readonly namespace: string; readonly labels: Labels };
}

const GROUP = "gateway.networking.k8s.io";

/**
 * Whether a workload is among the targets of a policy, by Istio's reference of `targetRefs`: it was made for a Gateway of the policy's
 * namespace, or for one of a class that the root namespace names. Its labels say what it was made for. Other kinds are for waypoints.
 */
export const isTargeted = (targets: readonly TargetName[], targeting: Targeting): boolean =>
  targets.some((target) => isTarget(target, targeting));

function isTarget({ group, kind, name }: TargetName, { policyNamespace, rootNamespace, workload }: Targeting): boolean {
  if (group !== GROUP) return false;
  if (kind === "Gateway") return policyNamespace === workload.namespace && workload.labels[`${GROUP}/gateway-name`] === name;
  return kind === "GatewayClass" && policyNamespace === rootNamespace && workload.labels[`${GROUP}/gateway-class-name`] === name;
}
