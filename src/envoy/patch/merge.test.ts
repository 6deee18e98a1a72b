import assert from "node:assert/strict";
import { create, type DescMessage, fromJson, type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { RouteSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { messageRegistry } from "../../wire/json.ts";
import { type ListMode, mergeInto } from "./merge.ts";

const registry = await messageRegistry();

interface MergeCase {
  readonly title: string;
  readonly schema: DescMessage;
  readonly target: JsonValue;
  readonly patch: JsonValue;
  readonly lists?: ListMode;
  readonly result: JsonValue;
}

const lua = (code: string): JsonValue => ({ "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", inlineCode: code });

const CASES: readonly MergeCase[] = [
  {
    title: "sets scalars that the patch has and leaves the others",
    schema: ClusterSchema,
    target: { name: "a", altStatName: "b" },
    patch: { altStatName: "c" },
    result: { name: "a", altStatName: "c" },
  },
  {
    title: "takes a duration whole",
    schema: ClusterSchema,
    target: { connectTimeout: "1.500s" },
    patch: { connectTimeout: "3s" },
    result: { connectTimeout: "3s" },
  },
  {
    title: "takes a wrapped scalar",
    schema: ClusterSchema,
    target: { perConnectionBufferLimitBytes: 7 },
    patch: { perConnectionBufferLimitBytes: 8 },
    result: { perConnectionBufferLimitBytes: 8 },
  },
  {
    title: "takes a wrapped zero where there is nothing, not over what is there",
    schema: RouteSchema,
    target: { match: { caseSensitive: true }, route: { retryPolicy: { numRetries: 2 } } },
    patch: { match: { caseSensitive: false }, route: { includeVhRateLimits: false, retryPolicy: { numRetries: 0 } } },
    result: { match: { caseSensitive: true }, route: { includeVhRateLimits: false, retryPolicy: { numRetries: 2 } } },
  },
  {
    title: "takes a zero that has a presence of its own",
    schema: RouteSchema,
    target: { route: { cluster: "a", prefixRewrite: "/x", autoHostRewrite: true } },
    patch: { route: { cluster: "", hostRewriteLiteral: "" } },
    result: { route: { cluster: "", prefixRewrite: "/x", hostRewriteLiteral: "" } },
  },
  {
    title: "replaces a message of arbitrary type, unless only its type is said again",
    schema: RouteSchema,
    target: { route: { earlyDataPolicy: { name: "a", typedConfig: lua("1") } } },
    patch: { route: { earlyDataPolicy: { name: "b", typedConfig: lua("") } } },
    result: { route: { earlyDataPolicy: { name: "b", typedConfig: lua("1") } } },
  },
  {
    title: "goes on inside messages",
    schema: ClusterSchema,
    target: { upstreamConnectionOptions: { tcpKeepalive: { keepaliveTime: 5 } } },
    patch: { upstreamConnectionOptions: { tcpKeepalive: { keepaliveProbes: 2 } } },
    result: { upstreamConnectionOptions: { tcpKeepalive: { keepaliveProbes: 2, keepaliveTime: 5 } } },
  },
  {
    title: "appends to lists",
    schema: ClusterSchema,
    target: { circuitBreakers: { thresholds: [{ maxRequests: 1 }] } },
    patch: { circuitBreakers: { thresholds: [{ maxRequests: 2 }] } },
    result: { circuitBreakers: { thresholds: [{ maxRequests: 1 }, { maxRequests: 2 }] } },
  },
  {
    title: "puts the patch's lists in place of others where told",
    schema: ClusterSchema,
    lists: "replace",
    target: { circuitBreakers: { thresholds: [{ maxRequests: 1 }] }, filters: [{ name: "kept" }] },
    patch: { circuitBreakers: { thresholds: [{ maxRequests: 2 }] } },
    result: { circuitBreakers: { thresholds: [{ maxRequests: 2 }] }, filters: [{ name: "kept" }] },
  },
  {
    title: "replaces entries of maps",
    schema: RouteSchema,
    target: { typedPerFilterConfig: { a: lua("1"), b: lua("1") } },
    patch: { typedPerFilterConfig: { b: lua("2"), c: lua("2") } },
    result: { typedPerFilterConfig: { a: lua("1"), b: lua("2"), c: lua("2") } },
  },
  {
    title: "changes over to the patch's member of a oneof",
    schema: RouteSchema,
    target: { route: { cluster: "a", timeout: "1s" } },
    patch: { directResponse: { status: 503 } },
    result: { directResponse: { status: 503 } },
  },
  {
    title: "goes on inside the same member of a oneof",
    schema: RouteSchema,
    target: { route: { cluster: "a", timeout: "1s" } },
    patch: { route: { timeout: "0s" } },
    result: { route: { cluster: "a", timeout: "0s" } },
  },
  {
    title: "replaces keys of a struct",
    schema: ClusterSchema,
    target: { metadata: { filterMetadata: { istio: { a: 1 } } } },
    patch: { metadata: { filterMetadata: { shop: { b: [2] } } } },
    result: { metadata: { filterMetadata: { istio: { a: 1 }, shop: { b: [2] } } } },
  },
];

describe("mergeInto", () => {
  for (const { title, schema, target, patch, lists, result } of CASES) {
    it(title, () => {
      const message: MessageShape<DescMessage> = fromJson(schema, target, { registry });
      mergeInto({ schema, lists }, message, fromJson(schema, patch, { registry }));
      assert.deepEqual(toJson(schema, message, { registry }), result);
    });
  }

  it("shares nothing between the patch and what it was merged into", () => {
    const patch = create(ClusterSchema, {
      circuitBreakers: { thresholds: [{ maxRequests: 1 }] },
      metadata: { filterMetadata: { a: { b: 1 } } },
    });
    const [one, two] = [create(ClusterSchema), create(ClusterSchema)];
    mergeInto({ schema: ClusterSchema }, one, patch);
    mergeInto({ schema: ClusterSchema }, two, patch);
    assert.deepEqual(one, two);
    assert.notEqual(one.circuitBreakers?.thresholds[0], patch.circuitBreakers?.thresholds[0]);
    assert.notEqual(one.metadata?.filterMetadata.a, two.metadata?.filterMetadata.a);
  });
});
