import { create } from "@bufbuild/protobuf";
import {
  type HttpConnectionManager_Tracing,
  HttpConnectionManager_TracingSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { type CustomTag, CustomTagSchema } from "../../gen/envoy/type/tracing/v3/custom_tag_pb.js";
import { buildTracer, type TracerInput } from "./tracer.ts";

/** Tracing of one connection manager. */
export interface TracingInput {
  /** Percentages, 0 to 100: of requests that ask for it, of all others, and of both together. */
  readonly clientSampling: number;
  readonly randomSampling: number;
  readonly overallSampling: number;
  readonly maxPathTagLength?: number;
  readonly customTags: readonly CustomTagInput[];
  /** Where spans go; absent = to the tracer in the proxy's bootstrap, if it has one. */
  readonly provider?: TracerInput;
  /** Requests to servers have spans of their own: a gateway is a hop, a sidecar is part of its application. */
  readonly spawnUpstreamSpan?: boolean;
  /** Spans are reported, but servers are not told of them. */
  readonly withoutPropagation?: boolean;
}

export type CustomTagInput = { readonly tag: string } & (
  | { readonly literal: string }
  | { readonly header: string; readonly fallback: string }
  | { readonly environment: string; readonly fallback: string }
  /** A text with commands of Envoy's access log formats. */
  | { readonly format: string }
  /** What a filter left about the request under its name. */
  | { readonly metadata: { readonly filter: string; readonly key: string } }
);

/** Builds the tracing part of a connection manager. */
export function buildTracing(input: TracingInput): HttpConnectionManager_Tracing {
  return create(HttpConnectionManager_TracingSchema, {
    clientSampling: { value: input.clientSampling },
    randomSampling: { value: input.randomSampling },
    overallSampling: { value: input.overallSampling },
    ...(input.maxPathTagLength !== undefined && { maxPathTagLength: input.maxPathTagLength }),
    customTags: input.customTags.map(customTag),
    ...(input.provider !== undefined && { provider: buildTracer(input.provider) }),
    ...(input.spawnUpstreamSpan === true && { spawnUpstreamSpan: true }),
    noContextPropagation: input.withoutPropagation === true,
  });
}

function customTag(input: CustomTagInput): CustomTag {
  const { tag } = input;
  if ("literal" in input) return create(CustomTagSchema, { tag, type: { case: "literal", value: { value: input.literal } } });
  if ("format" in input) return create(CustomTagSchema, { tag, value: input.format });
  if ("metadata" in input) return metadataTag(tag, input.metadata);
  const { fallback: defaultValue } = input;
  if ("header" in input)
    return create(CustomTagSchema, { tag, type: { case: "requestHeader", value: { name: input.header, defaultValue } } });
  return create(CustomTagSchema, { tag, type: { case: "environment", value: { name: input.environment, defaultValue } } });
}

const metadataTag = (tag: string, { filter, key }: { readonly filter: string; readonly key: string }): CustomTag =>
  create(CustomTagSchema, {
    tag,
    type: {
      case: "metadata",
      value: {
        kind: { kind: { case: "request", value: {} } },
        metadataKey: { key: filter, path: [{ segment: { case: "key", value: key } }] },
      },
    },
  });
