import assert from "node:assert/strict";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../gen/envoy/service/discovery/v3/discovery_pb.js";
import { readDeltaRequest, readSotwRequest } from "./discovery-request.ts";
import { encodedBytes } from "./encode.ts";
import { deltaResponse, responseSize, sotwResponse } from "./response-frame.ts";
import { SharedBlocks } from "./shared-blocks.ts";

const resources = fc.uniqueArray(
  fc.record({ name: fc.string({ unit: "grapheme", minLength: 1 }), body: fc.uint8Array({ maxLength: 400 }) }),
  { selector: (one) => one.name, maxLength: 20 },
);
const content = fc.record({
  resources,
  removed: fc.array(fc.string({ minLength: 1 })),
  typeUrl: fc.string({ minLength: 1 }),
  version: fc.string(),
  nonce: fc.string(),
  controlPlane: fc.string(),
});

describe("responses put together from encoded parts", () => {
  it("read back as what went in", () => {
    holds(
      fc.property(content, (given) => {
        const encoded = given.resources.map(({ name, body }) => encodedBytes(given.typeUrl, name, body));
        const blocks = new SharedBlocks();
        const bytes = deltaResponse({ ...given, resources: encoded }, blocks);
        const delta = fromBinary(DeltaDiscoveryResponseSchema, Buffer.concat(bytes));
        assert.deepEqual(
          delta.resources.map((one) => [one.name, one.version, one.resource?.typeUrl, [...(one.resource?.value ?? [])]]),
          encoded.map((one) => [one.name, one.version, one.typeUrl, [...one.body]]),
        );
        assert.deepEqual(
          [delta.typeUrl, delta.systemVersionInfo, delta.nonce, delta.removedResources],
          [given.typeUrl, given.version, given.nonce, given.removed],
        );
        assert.equal(delta.controlPlane?.identifier ?? "", given.controlPlane);
        const sotw = fromBinary(DiscoveryResponseSchema, Buffer.concat(sotwResponse({ ...given, resources: encoded }, blocks)));
        assert.deepEqual(
          sotw.resources.map((any) => [any.typeUrl, [...any.value]]),
          encoded.map((one) => [one.typeUrl, [...one.body]]),
        );
        assert.deepEqual([sotw.typeUrl, sotw.versionInfo, sotw.nonce], [given.typeUrl, given.version, given.nonce]);
        assert.ok(responseSize(encoded, []) >= encoded.reduce((sum, one) => sum + one.body.length, 0));
      }),
    );
  });
});

describe("requests read by hand", () => {
  const text = fc.string({ unit: "grapheme" });
  const fields = fc.record({
    typeUrl: text,
    nonce: text,
    names: fc.array(text),
    unsubscribe: fc.array(text),
    versions: fc.dictionary(text, text),
    error: fc.option(text),
  });

  it("say what the library reads", () => {
    holds(
      fc.property(fields, ({ typeUrl, nonce, names, unsubscribe, versions, error }) => {
        const errorDetail = error === null ? {} : { errorDetail: { code: 3, message: error } };
        const delta = create(DeltaDiscoveryRequestSchema, {
          typeUrl,
          responseNonce: nonce,
          resourceNamesSubscribe: names,
          resourceNamesUnsubscribe: unsubscribe,
          initialResourceVersions: versions,
          node: { id: "n" },
          ...errorDetail,
        });
        const read = readDeltaRequest(toBinary(DeltaDiscoveryRequestSchema, delta));
        assert.deepEqual(
          [read.typeUrl, read.nonce, read.names, read.unsubscribe, read.error?.message],
          [typeUrl, nonce, names, unsubscribe, error ?? undefined],
        );
        assert.deepEqual(read.initialVersions, new Map(Object.entries(delta.initialResourceVersions)));
        const sotw = create(DiscoveryRequestSchema, {
          typeUrl,
          responseNonce: nonce,
          resourceNames: names,
          versionInfo: nonce,
          ...errorDetail,
        });
        const other = readSotwRequest(toBinary(DiscoveryRequestSchema, sotw));
        assert.deepEqual([other.typeUrl, other.nonce, other.names, other.error?.message], [typeUrl, nonce, names, error ?? undefined]);
      }),
    );
  });

  it("never do worse than throw on garbage", () => {
    holds(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        for (const read of [readDeltaRequest, readSotwRequest]) {
          try {
            read(bytes);
          } catch (error) {
            assert.ok(error instanceof Error);
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
