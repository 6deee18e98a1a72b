import assert from "node:assert/strict";
import { create, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Edition } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { ClusterSchema } from "../gen/envoy/config/cluster/v3/cluster_pb.js";
import { LocalitySchema } from "../gen/envoy/config/core/v3/base_pb.js";
import { ClusterLoadAssignmentSchema } from "../gen/envoy/config/endpoint/v3/endpoint_pb.js";
import { encode, encodedOnce } from "./encode.ts";
import { messageRegistry } from "./json.ts";
import { type Draw, randomMessage } from "./random-message.ts";

const RUNS = 4;

describe("messageBytes", () => {
  it("writes what the library writes, for every message there is", async () => {
    const schemas = [...(await messageRegistry())].filter(
      (one): one is DescMessage => one.kind === "message" && one.file.edition === Edition.EDITION_PROTO3,
    );
    assert.ok(schemas.length > 1000, `only ${schemas.length} messages`);
    let bytes = 0;
    holds(
      fc.property(fc.infiniteStream(fc.nat({ max: 0xffff })), (stream) => {
        const draw: Draw = (below) => stream.next().value % below;
        for (const schema of schemas) {
          const init = randomMessage(schema, draw);
          const message = create(schema, init);
          const want = toBinary(schema, message);
          assert.equal(Buffer.compare(encode(schema, message), want), 0, schema.typeName);
          assert.equal(Buffer.compare(encode(schema, init), want), 0, schema.typeName);
          bytes += want.length;
        }
      }),
      { numRuns: RUNS },
    );
    assert.ok(bytes > schemas.length * RUNS * 20, `messages of ${bytes / schemas.length / RUNS} bytes show little`);
  });

  it("writes fields it does not know after those it does", () => {
    const cluster = encode(ClusterSchema, { name: "a", connectTimeout: { seconds: 3n }, altStatName: "b" });
    const read = fromBinary(LocalitySchema, cluster);
    assert.deepEqual(
      read.$unknown?.map(({ no }) => no),
      [4, 28],
    );
    assert.deepEqual(encode(LocalitySchema, read), cluster);
  });

  it("says where a value stands that is none of its type", () => {
    const threshold = { maxRequests: -1 };
    assert.throws(
      () => encode(ClusterSchema, { name: "a", circuitBreakers: { thresholds: [{}, threshold] } }),
      /cannot encode envoy\.config\.cluster\.v3\.Cluster: circuit_breakers\.thresholds\.max_requests: -1 is no unsigned/,
    );
    assert.deepEqual(encode(LocalitySchema, { region: "a" }), Uint8Array.of(10, 1, 97));
  });

  it("copies the bytes of what was encoded once, but not into what is made from it", () => {
    const locality = encodedOnce(LocalitySchema, { region: "eu", zone: "eu-1" });
    const inside = { endpoints: [{ locality }, { locality: { ...locality, zone: "eu-2" } }] };
    assert.deepEqual(
      encode(ClusterLoadAssignmentSchema, inside),
      toBinary(ClusterLoadAssignmentSchema, create(ClusterLoadAssignmentSchema, inside)),
    );
    assert.ok(Object.isFrozen(locality));
  });
});
