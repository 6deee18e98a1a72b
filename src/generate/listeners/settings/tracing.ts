import { durationMs } from "@bufbuild/protobuf/wkt";
import type { CustomTagInput, TracingInput, TracingProviderInput } from "../../../envoy/filters/tracing.ts";
import type { MeshConfig, MeshConfig_ExtensionProvider } from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { ProxyConfig } from "../../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import type { Tracing as ProxyTracing } from "../../../gen/istio/mesh/v1alpha1/shared_pb.js";
import type { Telemetry, Tracing } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { Side } from "../traits.ts";
import { providerCluster } from "./access-logs.ts";
import { appliesTo } from "./telemetry.ts";

/** Percentage of requests traced where nobody says how many. */
const DEFAULT_SAMPLING = 1;

export interface TracingChoice {
  readonly tracing: TracingInput | undefined;
  readonly requestIdDecidesSampling: boolean;
}

interface Sources {
  readonly mesh: MeshConfig;
  readonly proxyConfig: ProxyConfig | undefined;
  readonly telemetry: readonly Telemetry[];
  readonly side: Side;
  readonly tracingService: string;
}

/** Tracing of one side: Telemetry objects first, each level over the one before, then the mesh's and the proxy's own settings. */
export function tracingOf(sources: Sources): TracingChoice {
  const { mesh, proxyConfig, telemetry, side } = sources;
  const rules = telemetry.flatMap(({ tracing }) => tracing).filter(({ match }) => appliesTo(match?.mode, side));
  const last = <T>(pick: (rule: Tracing) => T | undefined): T | undefined => rules.map(pick).findLast((value) => value !== undefined);
  const requestIdDecidesSampling = last((rule) => rule.useRequestIdForTraceSampling) ?? true;
  const providerName = last((rule) => rule.providers[0]?.name) ?? mesh.defaultProviders?.tracing[0];
  if (rules.length === 0 && providerName === undefined && !mesh.enableTracing) return { tracing: undefined, requestIdDecidesSampling };
  if (last((rule) => rule.disableSpanReporting) === true) return { tracing: undefined, requestIdDecidesSampling };
  const found = mesh.extensionProviders.find(({ name }) => name === providerName);
  const provider = found === undefined ? undefined : providerInput(found, sources.tracingService);
  const tags = last((rule) => (Object.keys(rule.customTags).length > 0 ? customTags(rule.customTags) : undefined));
  const maxPathTagLength = provider?.maxTagLength || proxyConfig?.tracing?.maxPathTagLength || undefined;
  return {
    requestIdDecidesSampling,
    tracing: {
      clientSampling: 100,
      randomSampling: last((rule) => rule.randomSamplingPercentage) ?? proxySampling(proxyConfig),
      overallSampling: 100,
      customTags: tags ?? customTags(proxyConfig?.tracing?.customTags ?? {}),
      ...(maxPathTagLength !== undefined && { maxPathTagLength }),
      ...(provider !== undefined && { provider: provider.input }),
    },
  };
}

/** Whether a tracer that reports under a service name may be in use: only then does a workload's name split what is generated. */
export const namesService = (mesh: MeshConfig): boolean =>
  mesh.extensionProviders.some(({ provider }) => provider.case === "opentelemetry");

function proxySampling(config: ProxyConfig | undefined): number {
  const sampling = config?.tracing?.sampling ?? 0;
  return sampling > 0 ? Math.min(sampling, 100) : DEFAULT_SAMPLING;
}

function providerInput(
  { provider }: MeshConfig_ExtensionProvider,
  serviceName: string,
): { input: TracingProviderInput; maxTagLength: number } | undefined {
  if (provider.case === "zipkin") {
    const { service, port, path, enable64bitTraceId, maxTagLength } = provider.value;
    const { cluster, authority: host } = providerCluster(service, port);
    return { maxTagLength, input: { kind: "zipkin", cluster, host, path: path || "/api/v2/spans", shortTraceIds: enable64bitTraceId } };
  }
  if (provider.case !== "opentelemetry") return undefined;
  const { service, port, maxTagLength, http } = provider.value;
  const { cluster, authority: host } = providerCluster(service, port);
  if (http === undefined) return { maxTagLength, input: { kind: "otelGrpc", cluster, host, serviceName } };
  const timeoutMs = http.timeout === undefined ? 1_000 : durationMs(http.timeout);
  const headers = http.headers.flatMap(({ name, headerValue }) =>
    headerValue.case === "value" ? [{ name, value: headerValue.value }] : [],
  );
  return { maxTagLength, input: { kind: "otelHttp", cluster, host, path: http.path, timeoutMs, headers, serviceName } };
}

/** Tags of a Telemetry or of a ProxyConfig: two messages of one shape. */
function customTags(tags: Tracing["customTags"] | ProxyTracing["customTags"]): readonly CustomTagInput[] {
  return sorted(tags).flatMap(([tag, { type }]): CustomTagInput[] => {
    if (type.case === "literal") return [{ tag, literal: type.value.value }];
    if (type.case === "header") return [{ tag, header: type.value.name, fallback: type.value.defaultValue }];
    return type.case === "environment" ? [{ tag, environment: type.value.name, fallback: type.value.defaultValue }] : [];
  });
}

type Tag = (Tracing["customTags"] | ProxyTracing["customTags"])[string];

const sorted = (map: Readonly<Record<string, Tag>>): [string, Tag][] => Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
