import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Any, durationFromMs } from "@bufbuild/protobuf/wkt";
import { HeaderValueOption_HeaderAppendAction as Append } from "../../gen/envoy/config/core/v3/base_pb.js";
import type { TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import type { GrpcServiceSchema } from "../../gen/envoy/config/core/v3/grpc_service_pb.js";
import type { HttpServiceSchema } from "../../gen/envoy/config/core/v3/http_service_pb.js";
import { DatadogConfigSchema } from "../../gen/envoy/config/trace/v3/datadog_pb.js";
import { type Tracing_Http, Tracing_HttpSchema } from "../../gen/envoy/config/trace/v3/http_tracer_pb.js";
import { OpenTelemetryConfigSchema } from "../../gen/envoy/config/trace/v3/opentelemetry_pb.js";
import { SkyWalkingConfigSchema } from "../../gen/envoy/config/trace/v3/skywalking_pb.js";
import {
  ZipkinConfig_TraceContextOption as TraceContext,
  ZipkinConfig_CollectorEndpointVersion,
  ZipkinConfigSchema,
} from "../../gen/envoy/config/trace/v3/zipkin_pb.js";
import { DynatraceResourceDetectorConfigSchema } from "../../gen/envoy/extensions/tracers/opentelemetry/resource_detectors/v3/dynatrace_resource_detector_pb.js";
import { EnvironmentResourceDetectorConfigSchema } from "../../gen/envoy/extensions/tracers/opentelemetry/resource_detectors/v3/environment_resource_detector_pb.js";
import { DynatraceSamplerConfigSchema } from "../../gen/envoy/extensions/tracers/opentelemetry/samplers/v3/dynatrace_sampler_pb.js";
import { anyOf } from "../../wire/encode.ts";

export interface HeaderInput {
  readonly name: string;
  readonly value: string;
}

/** A collector that is spoken to in HTTP. */
export interface HttpCollectorInput {
  readonly cluster: string;
  readonly uri: string;
  readonly timeoutMs: number;
  readonly headers: readonly HeaderInput[];
}

/** A collector that is spoken to in gRPC. */
export interface GrpcCollectorInput {
  readonly cluster: string;
  readonly authority: string;
  readonly timeoutMs?: number;
  readonly metadata: readonly HeaderInput[];
}

export interface OpenTelemetryInput {
  readonly kind: "opentelemetry";
  readonly serviceName: string;
  readonly collector: { readonly grpc: GrpcCollectorInput } | { readonly http: HttpCollectorInput };
  readonly detectors: readonly ("environment" | "dynatrace")[];
  /** Dynatrace decides which requests are traced. */
  readonly sampler?: {
    readonly tenant: string;
    readonly clusterId: number;
    readonly rootSpansPerMinute: number;
    readonly service: HttpCollectorInput;
  };
}

/** A tracer that upstream Envoy has. */
export type TracerInput =
  | {
      readonly kind: "zipkin";
      readonly collector: HttpCollectorInput;
      readonly shortTraceIds: boolean;
      /** Understand and send the W3C's headers beside those of B3. */
      readonly w3c: boolean;
    }
  | { readonly kind: "datadog"; readonly cluster: string; readonly host: string; readonly serviceName: string }
  | { readonly kind: "skywalking"; readonly collector: GrpcCollectorInput; readonly token: string }
  | OpenTelemetryInput;

const NAMES = {
  zipkin: "envoy.tracers.zipkin",
  datadog: "envoy.tracers.datadog",
  skywalking: "envoy.tracers.skywalking",
  opentelemetry: "envoy.tracers.opentelemetry",
} as const satisfies Record<TracerInput["kind"], string>;

/** Builds a tracer. */
export const buildTracer = (input: TracerInput): Tracing_Http =>
  create(Tracing_HttpSchema, { name: NAMES[input.kind], configType: { case: "typedConfig", value: typed(input) } });

function typed(input: TracerInput): Any {
  switch (input.kind) {
    case "zipkin":
      return zipkin(input);
    case "datadog": {
      const { cluster: collectorCluster, host: collectorHostname, serviceName } = input;
      return anyOf(DatadogConfigSchema, create(DatadogConfigSchema, { collectorCluster, collectorHostname, serviceName }));
    }
    case "skywalking":
      return skyWalking(input);
    case "opentelemetry":
      return openTelemetry(input);
  }
}

const skyWalking = ({ collector, token }: Extract<TracerInput, { kind: "skywalking" }>): Any =>
  anyOf(
    SkyWalkingConfigSchema,
    create(SkyWalkingConfigSchema, {
      grpcService: grpcService(collector),
      ...(token !== "" && { clientConfig: { backendTokenSpecifier: { case: "backendToken" as const, value: token } } }),
    }),
  );

const zipkin = ({ collector, shortTraceIds, w3c }: Extract<TracerInput, { kind: "zipkin" }>): Any =>
  anyOf(
    ZipkinConfigSchema,
    create(ZipkinConfigSchema, {
      collectorService: httpService(collector),
      collectorEndpointVersion: ZipkinConfig_CollectorEndpointVersion.HTTP_JSON,
      traceId128bit: !shortTraceIds,
      sharedSpanContext: false,
      traceContextOption: w3c ? TraceContext.USE_B3_WITH_W3C_PROPAGATION : TraceContext.USE_B3,
    }),
  );

function openTelemetry({ serviceName, collector, detectors, sampler }: OpenTelemetryInput): Any {
  const message = create(OpenTelemetryConfigSchema, {
    serviceName,
    ...("grpc" in collector ? { grpcService: grpcService(collector.grpc) } : { httpService: httpService(collector.http) }),
    resourceDetectors: detectors.map(detector),
    ...(sampler !== undefined && { sampler: dynatraceSampler(sampler) }),
  });
  return anyOf(OpenTelemetryConfigSchema, message);
}

type ExtensionInit = MessageInitShape<typeof TypedExtensionConfigSchema>;

function detector(kind: OpenTelemetryInput["detectors"][number]): ExtensionInit {
  const typedConfig =
    kind === "environment"
      ? anyOf(EnvironmentResourceDetectorConfigSchema, create(EnvironmentResourceDetectorConfigSchema))
      : anyOf(DynatraceResourceDetectorConfigSchema, create(DynatraceResourceDetectorConfigSchema));
  return { name: `envoy.tracers.opentelemetry.resource_detectors.${kind}`, typedConfig };
}

function dynatraceSampler({ tenant, clusterId, rootSpansPerMinute, service }: NonNullable<OpenTelemetryInput["sampler"]>): ExtensionInit {
  const config = create(DynatraceSamplerConfigSchema, { tenant, clusterId, rootSpansPerMinute, httpService: httpService(service) });
  return { name: "envoy.tracers.opentelemetry.samplers.dynatrace", typedConfig: anyOf(DynatraceSamplerConfigSchema, config) };
}

function httpService({ cluster, uri, timeoutMs, headers }: HttpCollectorInput): MessageInitShape<typeof HttpServiceSchema> {
  return {
    httpUri: { uri, httpUpstreamType: { case: "cluster", value: cluster }, timeout: durationFromMs(timeoutMs) },
    requestHeadersToAdd: headers.map(({ name, value }) => ({
      header: { key: name, value },
      appendAction: Append.OVERWRITE_IF_EXISTS_OR_ADD,
    })),
  };
}

function grpcService({ cluster, authority, timeoutMs, metadata }: GrpcCollectorInput): MessageInitShape<typeof GrpcServiceSchema> {
  return {
    targetSpecifier: { case: "envoyGrpc", value: { clusterName: cluster, authority } },
    ...(timeoutMs !== undefined && { timeout: durationFromMs(timeoutMs) }),
    initialMetadata: metadata.map(({ name, value }) => ({ key: name, value })),
  };
}
