import { quote } from "../../base/quote.ts";
import type { PolicyTargetReference, WorkloadSelector } from "../../gen/istio/type/v1beta1/selector_pb.js";
import { checkSelectorLabels } from "./labels.ts";
import type { Place } from "./place.ts";

/** What a policy may be attached to, as group/kind. */
const TARGETS: ReadonlySet<string> = new Set([
  "/Service",
  "core/Service",
  "networking.istio.io/ServiceEntry",
  "gateway.networking.k8s.io/Gateway",
  "gateway.networking.k8s.io/GatewayClass",
]);

/** What a policy applies to: workloads by label, or objects by reference, but not both. */
export interface Target {
  readonly selector?: WorkloadSelector | undefined;
  readonly targetRef?: PolicyTargetReference | undefined;
  readonly targetRefs: readonly PolicyTargetReference[];
}

/** Checks selector and references of a policy; `place` is its spec. */
export function checkTarget(target: Target, place: Place): void {
  const given = [target.selector !== undefined, target.targetRef !== undefined, target.targetRefs.length > 0];
  if (given.filter(Boolean).length > 1) place.fault("field.conflict", "give one of selector, targetRef and targetRefs");
  if (target.selector !== undefined) checkSelectorLabels(target.selector.matchLabels, place.in("selector"));
  if (target.targetRef !== undefined) checkTargetRef(target.targetRef, place.in("targetRef"));
  for (const [index, ref] of target.targetRefs.entries()) checkTargetRef(ref, place.in("targetRefs", index));
}

/** One reference to a Service, ServiceEntry, Gateway or GatewayClass of the same namespace. */
export function checkTargetRef(ref: PolicyTargetReference, place: Place): void {
  if (ref.name === "") place.in("name").fault("field.required", "name the object the policy applies to");
  if (ref.namespace !== "") place.in("namespace").fault("field.invalid", "a policy cannot refer to another namespace; leave this out");
  if (!TARGETS.has(`${ref.group}/${ref.kind}`)) {
    place
      .in("kind")
      .fault(
        "field.invalid",
        `${quote(`${ref.group}/${ref.kind}`)} is not a target; known are Service, ServiceEntry, Gateway and GatewayClass`,
      );
  }
}
