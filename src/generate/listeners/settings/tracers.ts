import type { Duration } from "@bufbuild/protobuf/wkt";
import { msOfDuration } from "../../../base/duration.ts";
import { headerValueFault, soughtHeaderFault } from "../../../config/checks/header.ts";
import type { HeaderInput, HttpCollectorInput, OpenTelemetryInput, TracerInput } from "../../../envoy/filters/tracer.ts";
import {
  type MeshConfig_ExtensionProvider_HttpHeader as ApiHeader,
  type MeshConfig_ExtensionProvider_HttpService as ApiHttpService,
  MeshConfig_ExtensionProvider_ServiceAttributeEnrichment as Enrichment,
  type MeshConfig_ExtensionProvider,
  type MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider as OtelProvider,
  MeshConfig_ExtensionProvider_ZipkinTracingProvider_TraceContextOption as TraceContext,
  type MeshConfig_ExtensionProvider_ZipkinTracingProvider as ZipkinProvider,
} from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { TracedWorkload } from "../traits.ts";
import type { ProviderLookup, ProviderTarget } from "./provider-target.ts";

/** A tracer and what it says of all spans. */
export interface TracerChoice {
  readonly input: TracerInput;
  /** Longest path that is put on a span; 0 = not said. */
  readonly maxTagLength: number;
  /** It decides itself which requests are traced, so it must see all. */
  readonly samples: boolean;
}

export interface TracerSources {
  readonly workload: TracedWorkload | undefined;
  readonly lookup: ProviderLookup;
}

const DEFAULT_ZIPKIN_TIMEOUT_MS = 5_000;

/** Where OTLP over HTTP is sent without a time-out being said, a collector may take this long; Envoy demands one. */
const DEFAULT_HTTP_TIMEOUT_MS = 1_000;

/**
 * The tracer of a provider. Undefined for providers that are none, for those whose service is unknown, and for tracers that upstream Envoy
 * no longer has (Lightstep, OpenCensus, Stackdriver).
 */
export function tracerOf({ provider }: MeshConfig_ExtensionProvider, sources: TracerSources): TracerChoice | undefined {
  switch (provider.case) {
    case "zipkin":
      return zipkin(provider.value, sources);
    case "opentelemetry":
      return openTelemetry(provider.value, sources);
    case "datadog": {
      const { service, port, maxTagLength } = provider.value;
      const target = sources.lookup(service, port);
      return target && { maxTagLength, samples: false, input: { kind: "datadog", ...target, serviceName: sources.workload?.name ?? "" } };
    }
    case "skywalking": {
      const target = sources.lookup(provider.value.service, provider.value.port);
      const collector = target && { cluster: target.cluster, authority: target.host, metadata: [] };
      return collector && { maxTagLength: 0, samples: false, input: { kind: "skywalking", collector, token: provider.value.accessToken } };
    }
    default:
      return undefined;
  }
}

function zipkin(provider: ZipkinProvider, { lookup }: TracerSources): TracerChoice | undefined {
  const target = lookup(provider.service, provider.port);
  if (target === undefined) return undefined;
  const { path, timeout, headers, enable64bitTraceId, traceContextOption, maxTagLength } = provider;
  return {
    maxTagLength,
    samples: false,
    input: {
      kind: "zipkin",
      collector: {
        cluster: target.cluster,
        uri: `http://${target.host}${path || "/api/v2/spans"}`,
        timeoutMs: millis(timeout) ?? DEFAULT_ZIPKIN_TIMEOUT_MS,
        headers: headersOf(headers),
      },
      shortTraceIds: enable64bitTraceId,
      w3c: traceContextOption === TraceContext.USE_B3_WITH_W3C_PROPAGATION,
    },
  };
}

function openTelemetry(provider: OtelProvider, sources: TracerSources): TracerChoice | undefined {
  const target = sources.lookup(provider.service, provider.port);
  if (target === undefined) return undefined;
  const semantic = provider.serviceAttributeEnrichment === Enrichment.OTEL_SEMANTIC_CONVENTIONS;
  const sampler = samplerOf(provider, target, sources.lookup);
  if (sampler === "incomplete") return undefined;
  const { workload } = sources;
  return {
    maxTagLength: provider.maxTagLength,
    samples: sampler !== undefined,
    input: {
      kind: "opentelemetry",
      serviceName: (semantic ? workload?.otelName : workload?.name) ?? "",
      collector: collectorOf(provider, target),
      detectors: detectorsOf(provider, semantic),
      ...(sampler !== undefined && { sampler }),
    },
  };
}

function collectorOf({ http, grpc }: OtelProvider, target: ProviderTarget): OpenTelemetryInput["collector"] {
  if (http !== undefined) return { http: httpCollector(http, target, http.path) };
  const timeoutMs = millis(grpc?.timeout);
  const metadata = headersOf(grpc?.initialMetadata ?? []);
  return { grpc: { cluster: target.cluster, authority: target.host, metadata, ...(timeoutMs !== undefined && { timeoutMs }) } };
}

const httpCollector = (
  { timeout, headers }: Pick<ApiHttpService, "timeout" | "headers">,
  { cluster, host }: ProviderTarget,
  path: string,
): HttpCollectorInput => ({
  cluster,
  uri: joined(host, path),
  timeoutMs: millis(timeout) ?? DEFAULT_HTTP_TIMEOUT_MS,
  headers: headersOf(headers),
});

/** By OpenTelemetry's conventions the environment may name the service too, so it is looked at. */
function detectorsOf({ resourceDetectors }: OtelProvider, semantic: boolean): OpenTelemetryInput["detectors"] {
  const environment = resourceDetectors?.environment !== undefined;
  const dynatrace = resourceDetectors?.dynatrace !== undefined;
  return [
    ...(environment ? (["environment"] as const) : []),
    ...(dynatrace ? (["dynatrace"] as const) : []),
    ...(semantic && !environment ? (["environment"] as const) : []),
  ];
}

/** Dynatrace's sampler asks its own service, or the one that spans are sent to over HTTP; without either the provider cannot work. */
function samplerOf(
  { sampling, http }: OtelProvider,
  exporter: ProviderTarget,
  lookup: ProviderLookup,
): OpenTelemetryInput["sampler"] | "incomplete" {
  if (sampling.case !== "dynatraceSampler") return undefined;
  const { tenant, clusterId, rootSpansPerMinute, httpService: own } = sampling.value;
  const target = own === undefined ? exporter : lookup(own.service, own.port);
  const settings = own === undefined ? http : own.http;
  if (target === undefined || settings === undefined) return "incomplete";
  const service = httpCollector(settings, target, own === undefined ? "/api/v2/samplingConfiguration" : settings.path);
  return { tenant, clusterId, rootSpansPerMinute, service };
}

/** Values of the control plane's environment have been put in where MeshConfig was read. What Envoy would refuse is left out. */
const headersOf = (headers: readonly ApiHeader[]): readonly HeaderInput[] =>
  headers.flatMap(({ name, headerValue }) =>
    soughtHeaderFault(name) === undefined && headerValue.case === "value" && headerValueFault(headerValue.value) === undefined
      ? [{ name, value: headerValue.value }]
      : [],
  );

const joined = (host: string, path: string): string => (path === "" ? host : `${host}/${path.replace(/^\/+/, "")}`);

/** A time that is over before it begins is none. */
const millis = (duration: Duration | undefined): number | undefined =>
  duration === undefined || msOfDuration(duration) < 0 ? undefined : msOfDuration(duration);
