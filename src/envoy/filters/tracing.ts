import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { HeaderValueOption_HeaderAppendAction } from "../../gen/envoy/config/core/v3/base_pb.js";
import type { Tracing_Http } from "../../gen/envoy/config/trace/v3/http_tracer_pb.js";
import { Tracing_HttpSchema } from "../../gen/envoy/config/trace/v3/http_tracer_pb.js";
import { OpenTelemetryConfigSchema } from "../../gen/envoy/config/trace/v3/opentelemetry_pb.js";
import { ZipkinConfig_CollectorEndpointVersion, ZipkinConfigSchema } from "../../gen/envoy/config/trace/v3/zipkin_pb.js";
import {
  type HttpConnectionManager_Tracing,
  HttpConnectionManager_TracingSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { type CustomTag, CustomTagSchema } from "../../gen/envoy/type/tracing/v3/custom_tag_pb.js";
import { anyOf } from "../../wire/encode.ts";

/** Tracing of one connection manager. */
export interface TracingInput {
  /** Percentages, 0 to 100: of requests that ask for it, of all others, and of both together. */
  readonly clientSampling: number;
  readonly randomSampling: number;
  readonly overallSampling: number;
  readonly maxPathTagLength?: number;
  readonly customTags: readonly CustomTagInput[];
  /** Where spans go; absent = to the tracer in the proxy's bootstrap, if it has one. */
  readonly provider?: TracingProviderInput;
}

export type CustomTagInput = { readonly tag: string } & (
  | { readonly literal: string }
  | { readonly header: string; readonly fallback: string }
  | { readonly environment: string; readonly fallback: string }
);

export type TracingProviderInput =
  | { readonly kind: "zipkin"; readonly cluster: string; readonly host: string; readonly path: string; readonly shortTraceIds: boolean }
  | { readonly kind: "otelGrpc"; readonly cluster: string; readonly host: string; readonly serviceName: string }
  | {
      readonly kind: "otelHttp";
      readonly cluster: string;
      readonly host: string;
      readonly path: string;
      readonly timeoutMs: number;
      readonly headers: readonly { readonly name: string; readonly value: string }[];
      readonly serviceName: string;
    };

/** Builds the tracing part of a connection manager. */
export function buildTracing(input: TracingInput): HttpConnectionManager_Tracing {
  return create(HttpConnectionManager_TracingSchema, {
    clientSampling: { value: input.clientSampling },
    randomSampling: { value: input.randomSampling },
    overallSampling: { value: input.overallSampling },
    ...(input.maxPathTagLength !== undefined && { maxPathTagLength: input.maxPathTagLength }),
    customTags: input.customTags.map(customTag),
    ...(input.provider !== undefined && { provider: provider(input.provider) }),
  });
}

function customTag(input: CustomTagInput): CustomTag {
  const { tag } = input;
  if ("literal" in input) return create(CustomTagSchema, { tag, type: { case: "literal", value: { value: input.literal } } });
  const { fallback: defaultValue } = input;
  if ("header" in input)
    return create(CustomTagSchema, { tag, type: { case: "requestHeader", value: { name: input.header, defaultValue } } });
  return create(CustomTagSchema, { tag, type: { case: "environment", value: { name: input.environment, defaultValue } } });
}

function provider(input: TracingProviderInput): Tracing_Http {
  const typed = input.kind === "zipkin" ? zipkin(input) : openTelemetry(input);
  return create(Tracing_HttpSchema, {
    name: input.kind === "zipkin" ? "envoy.tracers.zipkin" : "envoy.tracers.opentelemetry",
    configType: { case: "typedConfig", value: typed },
  });
}

const zipkin = (input: Extract<TracingProviderInput, { kind: "zipkin" }>) =>
  anyOf(
    ZipkinConfigSchema,
    create(ZipkinConfigSchema, {
      collectorCluster: input.cluster,
      collectorHostname: input.host,
      collectorEndpoint: input.path,
      collectorEndpointVersion: ZipkinConfig_CollectorEndpointVersion.HTTP_JSON,
      traceId128bit: !input.shortTraceIds,
      sharedSpanContext: false,
    }),
  );

function openTelemetry(input: Exclude<TracingProviderInput, { kind: "zipkin" }>) {
  const exporter =
    input.kind === "otelGrpc"
      ? { grpcService: { targetSpecifier: { case: "envoyGrpc" as const, value: { clusterName: input.cluster, authority: input.host } } } }
      : {
          httpService: {
            httpUri: {
              uri: `${input.host}${input.path}`,
              httpUpstreamType: { case: "cluster" as const, value: input.cluster },
              timeout: durationFromMs(input.timeoutMs),
            },
            requestHeadersToAdd: input.headers.map(({ name, value }) => ({
              header: { key: name, value },
              appendAction: HeaderValueOption_HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
            })),
          },
        };
  return anyOf(OpenTelemetryConfigSchema, create(OpenTelemetryConfigSchema, { ...exporter, serviceName: input.serviceName }));
}
