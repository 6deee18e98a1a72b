import { soughtHeaderFault } from "../../../config/checks/header.ts";
import type { CustomTagInput, TracingInput } from "../../../envoy/filters/tracing.ts";
import type { MeshConfig } from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { ProxyConfig } from "../../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import type { Tracing as ProxyTracing } from "../../../gen/istio/mesh/v1alpha1/shared_pb.js";
import type { Telemetry, Tracing } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import { formatFault } from "../../../model/format-operators.ts";
import type { Side, TracedWorkload } from "../traits.ts";
import { providerNamed } from "./extension-provider.ts";
import type { ProviderLookup } from "./provider-target.ts";
import { appliesTo } from "./telemetry.ts";
import { type TracerChoice, tracerOf } from "./tracers.ts";

export interface TracingChoice {
  readonly tracing: TracingInput | undefined;
  readonly requestIdDecidesSampling: boolean;
}

export interface TracingSources {
  readonly mesh: MeshConfig;
  readonly proxyConfig: ProxyConfig | undefined;
  readonly telemetry: readonly Telemetry[];
  readonly side: Side;
  /** Who is traced; undefined where no tracer asks. */
  readonly workload: TracedWorkload | undefined;
  readonly lookup: ProviderLookup;
  /** Percentage of requests where nothing else says how many (PILOT_TRACE_SAMPLING). */
  readonly defaultSampling: number;
}

/**
 * Tracing of one side: by Telemetry objects, each level over the one before, with the mesh's default provider; where neither is there, by
 * the mesh's and the proxy's own settings, which leave the tracer to the bootstrap.
 */
export function tracingOf(sources: TracingSources): TracingChoice {
  const { mesh, telemetry, side } = sources;
  const all = telemetry.flatMap(({ tracing }) => tracing);
  const byDefault = mesh.defaultProviders?.tracing[0];
  if (all.length === 0 && byDefault === undefined) return { tracing: legacyTracing(sources), requestIdDecidesSampling: true };
  const rules = all.filter(({ match }) => appliesTo(match?.mode, side));
  const last = <T>(pick: (rule: Tracing) => T | undefined): T | undefined => rules.map(pick).findLast((value) => value !== undefined);
  const requestIdDecidesSampling = last((rule) => rule.useRequestIdForTraceSampling) ?? true;
  const none = { tracing: undefined, requestIdDecidesSampling: true };
  if (last((rule) => rule.disableSpanReporting) === true) return none;
  const found = providerNamed(mesh, last((rule) => rule.providers[0]?.name) ?? byDefault);
  const tracer = found === undefined ? undefined : tracerOf(found, sources);
  if (tracer === undefined) return none;
  const withIstioTags = last((rule) => rule.enableIstioTags) ?? true;
  return {
    requestIdDecidesSampling,
    tracing: {
      ...sampling(tracer.samples ? 100 : (last((rule) => rule.randomSamplingPercentage) ?? proxySampling(sources))),
      customTags: sortedTags([
        ...(withIstioTags ? istioTags(sources.workload) : []),
        ...(last((rule) => (Object.keys(rule.customTags).length > 0 ? customTags(rule.customTags) : undefined)) ?? proxyTags(sources)),
      ]),
      ...pathLength(tracer, sources),
      provider: tracer.input,
      ...((side === "gateway" || tracer.input.kind === "skywalking") && { spawnUpstreamSpan: true }),
      ...(last((rule) => rule.disableContextPropagation) === true && { withoutPropagation: true }),
    },
  };
}

/** What `enableTracing` and `defaultConfig.tracing` say. Which tracer it is stands in the bootstrap, so no names of workloads are needed. */
function legacyTracing(sources: TracingSources): TracingInput | undefined {
  if (!sources.mesh.enableTracing) return undefined;
  return { ...sampling(proxySampling(sources)), customTags: sortedTags(proxyTags(sources)), ...pathLength(undefined, sources) };
}

const sampling = (randomSampling: number) => ({ clientSampling: 100, randomSampling, overallSampling: 100 });

/** More than all is no percentage: Istio takes it for one per cent, so as not to flood a collector by a slip. Less than nothing is none given. */
function proxySampling({ proxyConfig, defaultSampling }: TracingSources): number {
  const own = proxyConfig?.tracing?.sampling ?? 0;
  if (own > 100) return 1;
  return own > 0 ? own : defaultSampling;
}

function pathLength(tracer: TracerChoice | undefined, { proxyConfig }: TracingSources): Pick<TracingInput, "maxPathTagLength"> {
  const maxPathTagLength = tracer?.maxTagLength || proxyConfig?.tracing?.maxPathTagLength || undefined;
  return maxPathTagLength === undefined ? {} : { maxPathTagLength };
}

const RBAC = "envoy.filters.http.rbac";

/** Tags Istio puts on every span: who reports it, and what policies on trial would have decided. */
function istioTags(workload: TracedWorkload | undefined): readonly CustomTagInput[] {
  if (workload === undefined) return [];
  const trial = (name: string, action: "allow" | "deny", key: string): CustomTagInput => ({
    tag: `istio.authorization.dry_run.${action}_policy.${name}`,
    metadata: { filter: RBAC, key: `istio_dry_run_${action}_${key}` },
  });
  return [
    { tag: "istio.canonical_revision", literal: workload.revision },
    { tag: "istio.canonical_service", literal: workload.service },
    { tag: "istio.mesh_id", literal: workload.meshId },
    { tag: "istio.namespace", literal: workload.namespace },
    { tag: "istio.cluster_id", literal: workload.clusterId },
    trial("name", "allow", "shadow_effective_policy_id"),
    trial("result", "allow", "shadow_engine_result"),
    trial("name", "deny", "shadow_effective_policy_id"),
    trial("result", "deny", "shadow_engine_result"),
  ];
}

const proxyTags = ({ proxyConfig }: TracingSources): readonly CustomTagInput[] => customTags(proxyConfig?.tracing?.customTags ?? {});

/** Tags of a Telemetry or of a ProxyConfig: two messages of nearly one shape. Of the second nobody has judged them: what Envoy would refuse is left out. */
function customTags(tags: Tracing["customTags"] | ProxyTracing["customTags"]): readonly CustomTagInput[] {
  return Object.entries<Tag>(tags).flatMap(([tag, { type }]): CustomTagInput[] => {
    if (tag === "") return [];
    switch (type.case) {
      case "literal":
        return type.value.value === "" ? [] : [{ tag, literal: type.value.value }];
      case "header": {
        const { name, defaultValue } = type.value;
        return soughtHeaderFault(name) === undefined ? [{ tag, header: name, fallback: defaultValue }] : [];
      }
      case "environment":
        return type.value.name === "" ? [] : [{ tag, environment: type.value.name, fallback: type.value.defaultValue }];
      case "formatter":
        return formatFault(type.value.value) === undefined ? [{ tag, format: type.value.value }] : [];
      default:
        return [];
    }
  });
}

type Tag = (Tracing["customTags"] | ProxyTracing["customTags"])[string];

const sortedTags = (tags: readonly CustomTagInput[]): readonly CustomTagInput[] => tags.toSorted((a, b) => (a.tag < b.tag ? -1 : 1));
