import {
  type MetricSelector,
  type Metrics,
  MetricsOverrides_TagOverride_Operation as TagOperation,
  type Telemetry,
  TelemetrySchema,
  type Tracing,
} from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import { celFault } from "../../../model/cel-syntax.ts";
import { formatFault } from "../../../model/format-operators.ts";
import { NEEDED_LABELS } from "../../../model/standard-metrics.ts";
import { durationFault } from "../../checks/duration.ts";
import { soughtHeaderFault } from "../../checks/header.ts";
import { metricTagFormat } from "../../checks/metric-tag.ts";
import { percentFault } from "../../checks/percent.ts";
import type { Place } from "../../checks/place.ts";
import { checkTarget } from "../../checks/target.ts";
import type { SchemaRules } from "../../parse/schema-rules.ts";
import { istioKind } from "../istio-kind.ts";
import { TARGET_RULES } from "../target-rules.ts";

const providerRules = (at: string): SchemaRules => ({
  [`${at}[].providers[]`]: { required: ["name"] },
  [`${at}[].providers[].name`]: { minLength: 1 },
});

/** Metrics, traces and access logs of workloads. */
export const telemetry = istioKind({
  kind: "Telemetry",
  group: "telemetry.istio.io",
  versions: ["v1", "v1alpha1"],
  plural: "telemetries",
  singular: "telemetry",
  shortNames: ["telemetry"],
  storedVersion: "v1alpha1",
  columns: { Age: ".metadata.creationTimestamp" },
  schema: TelemetrySchema,
  rules: {
    ...TARGET_RULES,
    ...providerRules("metrics"),
    ...providerRules("tracing"),
    ...providerRules("accessLogging"),
    "metrics[].overrides[].match.customMetric": { minLength: 1 },
  },
  check: checkTelemetry,
});

function checkTelemetry(spec: Telemetry, place: Place): void {
  checkTarget(spec, place);
  if (spec.tracing.length > 1) place.in("tracing").fault("field.ineffective", "only the first tracing configuration is used");
  for (const [index, tracing] of spec.tracing.entries()) checkTracing(tracing, place.in("tracing", index));
  for (const [index, metrics] of spec.metrics.entries()) checkMetrics(metrics, place.in("metrics", index));
  for (const [index, logging] of spec.accessLogging.entries()) {
    if (logging.filter !== undefined)
      place.in("accessLogging", index, "filter", "expression").check("field.invalid", celFault(logging.filter.expression));
  }
}

function checkTracing(tracing: Tracing, place: Place): void {
  if (tracing.providers.length > 1) place.in("providers").fault("field.ineffective", "only the first provider is used");
  if (tracing.randomSamplingPercentage !== undefined)
    place.in("randomSamplingPercentage").check("field.range", percentFault(tracing.randomSamplingPercentage));
  for (const [name, tag] of Object.entries(tracing.customTags)) {
    const at = place.in("customTags", name);
    if (name === "") place.in("customTags").fault("field.invalid", "a tag needs a name");
    const { case: kind, value } = tag.type;
    if (kind === undefined) at.fault("field.required", "give literal, environment, header or formatter");
    else if ("name" in value ? value.name === "" : value.value === "") at.in(kind).fault("field.required", "must not be empty");
    else if (kind === "header") at.in(kind, "name").check("field.invalid", soughtHeaderFault(value.name));
    if (kind === "formatter") at.in(kind, "value").check("field.ineffective", formatFault(value.value));
  }
}

function checkMetrics(metrics: Metrics, place: Place): void {
  if (metrics.reportingInterval !== undefined) place.in("reportingInterval").check("field.range", durationFault(metrics.reportingInterval));
  for (const [index, override] of metrics.overrides.entries()) {
    const at = place.in("overrides", index);
    checkMetricMatch(override.match?.metricMatch, at.in("match"));
    for (const [name, tag] of Object.entries(override.tagOverrides)) {
      const value = at.in("tagOverrides", name, "value");
      if (name === "") at.in("tagOverrides").fault("field.invalid", "a tag needs a name");
      if (tag.operation === TagOperation.UPSERT && tag.value === "") value.fault("field.required", "operation UPSERT needs a value");
      if (tag.operation === TagOperation.REMOVE && tag.value !== "") value.fault("field.conflict", "operation REMOVE takes no value");
      if (tag.operation === TagOperation.UPSERT && tag.value !== "") value.check("field.ineffective", upsertFault(name, tag.value));
    }
  }
}

/** Metrics that Istio's own proxy has and upstream Envoy has not. */
function checkMetricMatch(match: MetricSelector["metricMatch"] | undefined, place: Place): void {
  if (match?.case !== "customMetric") return;
  if (match.value === "") place.in("customMetric").fault("field.required", "must not be empty");
  else place.in("customMetric").fault("field.ineffective", "upstream Envoy has no metrics but Istio's standard ones");
}

/** Why a label cannot have the value; then it stays as it is. */
function upsertFault(name: string, expression: string): string | undefined {
  if (NEEDED_LABELS.includes(name)) return "other labels are worked out from this one: it can be removed, not changed";
  const made = metricTagFormat(expression);
  return "fault" in made ? made.fault : undefined;
}
