import assert from "node:assert/strict";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { ClusterSchema } from "../gen/envoy/config/cluster/v3/cluster_pb.js";
import { MetadataSchema } from "../gen/envoy/config/core/v3/base_pb.js";
import { ListenerSchema } from "../gen/envoy/config/listener/v3/listener_pb.js";
import { TcpProxySchema } from "../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.js";
import { anyOf, encode, encoded, encodedBytes, sameEncoded, typedStruct } from "./encode.ts";
import { encodedJson, messageRegistry } from "./json.ts";
import { CLUSTER_TYPE, LISTENER_TYPE } from "./type-urls.ts";

describe("encode", () => {
  it("gives equal bytes whatever order maps were filled in", () => {
    const json = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.string(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.array(tie("value"), { maxLength: 3 }),
        tie("object"),
      ),
      object: fc.dictionary(fc.string(), tie("value"), { maxKeys: 5 }),
    }));
    holds(
      fc.property(fc.dictionary(fc.string(), json.object as fc.Arbitrary<Record<string, never>>, { maxKeys: 6 }), (filterMetadata) => {
        const message = create(ClusterSchema, { name: "a", metadata: { filterMetadata } });
        const turned = create(ClusterSchema, {
          name: "a",
          metadata: { filterMetadata: reversed(filterMetadata) as typeof filterMetadata },
        });
        assert.deepEqual(encode(ClusterSchema, message), encode(ClusterSchema, turned));
        assert.deepEqual(
          fromBinary(ClusterSchema, encode(ClusterSchema, turned)).metadata,
          fromBinary(ClusterSchema, toBinary(ClusterSchema, message)).metadata,
        );
      }),
    );
  });

  it("does not touch the message it is given", () => {
    const message = create(MetadataSchema, { filterMetadata: { b: { z: 1, a: 2 }, a: {} } });
    encode(MetadataSchema, message);
    assert.deepEqual(Object.keys(message.filterMetadata), ["b", "a"]);
  });

  it("makes versions from content alone", () => {
    const one = encoded({ typeUrl: CLUSTER_TYPE, name: "a" }, ClusterSchema, create(ClusterSchema, { name: "a" }));
    const same = encodedBytes(CLUSTER_TYPE, "a", one.body.slice());
    assert.ok(sameEncoded(one, same));
    assert.notEqual(
      one.version,
      encoded({ typeUrl: CLUSTER_TYPE, name: "a" }, ClusterSchema, create(ClusterSchema, { name: "a", altStatName: "b" })).version,
    );
  });
});

describe("encodedJson", () => {
  it("shows what is inside an Any, and only the type of what it does not know", async () => {
    const registry = await messageRegistry();
    const listener = create(ListenerSchema, {
      name: "l",
      filterChains: [
        {
          filters: [
            { name: "tcp", configType: { case: "typedConfig", value: anyOf(TcpProxySchema, create(TcpProxySchema, { statPrefix: "x" })) } },
            {
              name: "struct",
              configType: { case: "typedConfig", value: typedStruct("type.googleapis.com/envoy.x.v3.Y", { b: 1, a: "z" }) },
            },
            {
              name: "odd",
              configType: { case: "typedConfig", value: { typeUrl: "type.googleapis.com/no.such.Type", value: new Uint8Array([8, 1]) } },
            },
          ],
        },
      ],
    });
    const json = encodedJson(registry, encoded({ typeUrl: LISTENER_TYPE, name: "l" }, ListenerSchema, listener)) as {
      filterChains: { filters: { typedConfig: unknown }[] }[];
    };
    assert.deepEqual(
      json.filterChains[0]?.filters.map((filter) => filter.typedConfig),
      [
        { "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", statPrefix: "x" },
        { "@type": "type.googleapis.com/xds.type.v3.TypedStruct", typeUrl: "type.googleapis.com/envoy.x.v3.Y", value: { a: "z", b: 1 } },
        { "@type": "type.googleapis.com/no.such.Type" },
      ],
    );
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
}
