import { quote } from "../../../base/quote.ts";
import { type DestinationRule, DestinationRuleSchema } from "../../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { checkExportTo } from "../../checks/export-to.ts";
import { isDnsLabel, wildcardDomainFault } from "../../checks/host-name.ts";
import { checkLabels, checkSelectorLabels } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import { checkTrafficPolicy } from "../../checks/traffic-policy.ts";
import type { ConfigObject } from "../../object.ts";
import { istioKind } from "../istio-kind.ts";
import { SELECTOR_RULES } from "../target-rules.ts";

/** Policies for traffic to a host, after routing. */
export const destinationRule = istioKind({
  kind: "DestinationRule",
  group: "networking.istio.io",
  versions: ["v1", "v1beta1", "v1alpha3"],
  plural: "destinationrules",
  singular: "destinationrule",
  shortNames: ["dr"],
  columns: { Host: ".spec.host", Age: ".metadata.creationTimestamp" },
  schema: DestinationRuleSchema,
  rules: {
    "trafficPolicy.portLevelSettings": { maxItems: 4096 },
    "subsets[].trafficPolicy.portLevelSettings": { maxItems: 4096 },
    "workloadSelector.matchLabels": SELECTOR_RULES,
  },
  check: checkDestinationRule,
});

function checkDestinationRule(spec: DestinationRule, place: Place, object: ConfigObject<DestinationRule>): void {
  place.in("host").check("field.host", wildcardDomainFault(spec.host));
  if (spec.trafficPolicy !== undefined) checkTrafficPolicy(spec.trafficPolicy, object.namespace, place.in("trafficPolicy"));
  checkSubsets(spec, object.namespace, place.in("subsets"));
  checkExportTo(spec.exportTo, { namespace: object.namespace, isSelected: spec.workloadSelector !== undefined }, place.in("exportTo"));
  if (spec.workloadSelector !== undefined) checkSelectorLabels(spec.workloadSelector.matchLabels, place.in("workloadSelector"));
}

function checkSubsets(spec: DestinationRule, namespace: string, place: Place): void {
  const names = new Set<string>();
  for (const [index, subset] of spec.subsets.entries()) {
    const at = place.in(index);
    if (!isDnsLabel(subset.name))
      at.in("name").fault("field.invalid", `${quote(subset.name)} is not the name of a subset: it must be a DNS label`);
    if (names.has(subset.name)) at.in("name").fault("field.duplicate", `another subset is named ${quote(subset.name)}`);
    names.add(subset.name);
    checkLabels(subset.labels, at.in("labels"));
    if (subset.trafficPolicy !== undefined) checkTrafficPolicy(subset.trafficPolicy, namespace, at.in("trafficPolicy"));
  }
}
