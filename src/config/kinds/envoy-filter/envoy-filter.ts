import {
  EnvoyFilter_ApplyTo as ApplyTo,
  type EnvoyFilter_EnvoyConfigObjectPatch as ConfigPatch,
  type EnvoyFilter,
  EnvoyFilterSchema,
  EnvoyFilter_Patch_Operation as Operation,
} from "../../../gen/istio/networking/v1alpha3/envoy_filter_pb.js";
import { checkSelectorLabels } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import { checkTargetRef } from "../../checks/target.ts";
import { istioKind } from "../istio-kind.ts";
import { TARGET_RULES } from "../target-rules.ts";
import { checkMatch } from "./check-match.ts";
import { checkPatchValue } from "./check-patch-value.ts";

/** Patches on what we generate for Envoy. */
export const envoyFilter = istioKind({
  kind: "EnvoyFilter",
  group: "networking.istio.io",
  versions: ["v1alpha3"],
  plural: "envoyfilters",
  singular: "envoyfilter",
  shortNames: [],
  schema: EnvoyFilterSchema,
  rules: { ...TARGET_RULES, "workloadSelector.labels": { maxProperties: 256 } },
  check: checkEnvoyFilter,
});

function checkEnvoyFilter(spec: EnvoyFilter, place: Place): void {
  if (spec.workloadSelector !== undefined) {
    checkSelectorLabels(spec.workloadSelector.labels, place.in("workloadSelector"));
    if (spec.targetRefs.length > 0) place.in("targetRefs").fault("field.conflict", "cannot be combined with workloadSelector");
  }
  for (const [index, ref] of spec.targetRefs.entries()) checkTargetRef(ref, place.in("targetRefs", index));
  for (const [index, patch] of spec.configPatches.entries()) checkConfigPatch(patch, place.in("configPatches", index));
}

function checkConfigPatch(config: ConfigPatch, place: Place): void {
  if (config.applyTo === ApplyTo.INVALID) place.in("applyTo").fault("field.required", "must be set");
  if (config.match !== undefined) checkMatch(config.match, config.applyTo, place.in("match"));
  const patch = config.patch;
  if (patch === undefined) place.in("patch").fault("field.required", "must be set");
  else if (patch.operation === Operation.INVALID) place.in("patch", "operation").fault("field.required", "must be set");
  else if (patch.value !== undefined) checkPatchValue(patch, config.applyTo, place.in("patch", "value"));
  else if (patch.operation !== Operation.REMOVE)
    place.in("patch", "value").fault("field.required", `operation ${Operation[patch.operation]} needs a value`);
}
