import { msOfDuration } from "../../../base/duration.ts";
import type { MeshConfig } from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import {
  MetricSelector_IstioMetric as Metric,
  type MetricSelector,
  type Metrics,
  type MetricsOverrides,
  MetricsOverrides_TagOverride_Operation as TagOperation,
  type Telemetry,
} from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { Side } from "../traits.ts";
import { providerNamed } from "./extension-provider.ts";
import { appliesTo } from "./telemetry.ts";

/** A standard metric, as the Telemetry API calls it. */
export type MetricName = Exclude<keyof typeof Metric, "ALL_METRICS">;

/** What Telemetry objects say of one metric. */
export interface MetricChange {
  readonly disabled: boolean;
  /** Labels and the expressions they take their values from; undefined takes a label away. */
  readonly tags: ReadonlyMap<string, string | undefined>;
}

interface ChangeSources {
  readonly mesh: MeshConfig;
  readonly telemetry: readonly Telemetry[];
  readonly side: Side;
}

const DEFAULT_PROVIDERS: readonly string[] = ["prometheus"];

const ALL: readonly MetricName[] = (Object.keys(Metric) as (keyof typeof Metric)[]).filter(
  (name): name is MetricName => name !== "ALL_METRICS" && Number.isNaN(Number(name)),
);

/** What holds for the metrics of one side. */
export interface MetricRules {
  readonly changes: ReadonlyMap<MetricName, MetricChange>;
  /** Bytes of connections are reported at this interval while they last; undefined: at their end. */
  readonly reportMs: number | undefined;
}

/** Reports more often than that cost more than they tell. */
const SHORTEST_REPORT_MS = 1_000;
/** Envoy's filter of logs counts in 32 bits. */
const LONGEST_REPORT_MS = 2 ** 32 - 1;

/**
 * What Telemetry objects say about metrics on one side, by Istio's rules: the last rule that names providers decides which count; a rule
 * that names none speaks of those the rule before it spoke of; of several overrides the later wins, label by label. Undefined: no metrics at
 * all, because they are disabled or go to a provider that proxies cannot serve.
 */
export function metricRules({ mesh, telemetry, side }: ChangeSources): MetricRules | undefined {
  const named = mesh.defaultProviders?.metrics ?? [];
  const defaults = named.length > 0 ? named : DEFAULT_PROVIDERS;
  const rules = telemetry.flatMap(({ metrics }) => metrics);
  const inForce = rules.map(namesOf).findLast((names) => names.length > 0) ?? defaults;
  const provider = inForce.find((name) => providerNamed(mesh, name)?.provider.case === "prometheus");
  if (provider === undefined) return undefined;
  const changes = new Map<MetricName, MetricChange>();
  let disabled = false;
  let spokenOf = defaults;
  let reportMs: number | undefined;
  for (const rule of rules) {
    spokenOf = rule.providers.length > 0 ? namesOf(rule) : spokenOf;
    if (!spokenOf.includes(provider)) continue;
    if (rule.reportingInterval !== undefined)
      reportMs = Math.min(Math.max(msOfDuration(rule.reportingInterval), SHORTEST_REPORT_MS), LONGEST_REPORT_MS);
    for (const override of rule.overrides) {
      if (!appliesTo(override.match?.mode, side)) continue;
      const metrics = metricsOf(override.match);
      disabled = metrics === ALL && override.disabled === true;
      if (!disabled) for (const metric of metrics) changes.set(metric, merged(changes.get(metric), override));
    }
  }
  return disabled ? undefined : { changes, reportMs };
}

const namesOf = ({ providers }: Metrics): readonly string[] => providers.map(({ name }) => name);

/** Metrics that a selector means. Custom ones are those of Wasm modules: upstream Envoy has none of them. */
function metricsOf(match: MetricSelector | undefined): readonly MetricName[] {
  const { case: kind, value } = match?.metricMatch ?? { case: undefined };
  if (kind === "customMetric") return [];
  return kind === undefined || value === Metric.ALL_METRICS ? ALL : [Metric[value] as MetricName];
}

function merged(before: MetricChange | undefined, { disabled, tagOverrides }: MetricsOverrides): MetricChange {
  const tags = new Map(before?.tags);
  for (const [name, { operation, value }] of Object.entries(tagOverrides))
    tags.set(name, operation === TagOperation.REMOVE ? undefined : value);
  return { disabled: disabled ?? before?.disabled ?? false, tags };
}
