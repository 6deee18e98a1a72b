import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from "../gen/envoy/service/discovery/v3/discovery_pb.js";
import { type DiscoveryRequest, deltaAck, readDeltaRequest, readSotwRequest, requestedType } from "./discovery-request.ts";

const RUNS = 500;
const READERS = { delta: readDeltaRequest, sotw: readSotwRequest };
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const names = fc.array(text, { maxLength: 20 });
const said = fc.record({
  typeUrl: text,
  nonce: text,
  names,
  unsubscribe: names,
  versions: fc.dictionary(text, text, { maxKeys: 10 }),
  node: fc.option(text, { nil: undefined }),
  error: fc.option(fc.record({ code: fc.nat(16), message: text }), { nil: undefined }),
});
type Said = typeof said extends fc.Arbitrary<infer T> ? T : never;

const common = ({ node, error, typeUrl, nonce }: Said) => ({
  typeUrl,
  responseNonce: nonce,
  ...(node !== undefined && { node: { id: node } }),
  ...(error !== undefined && { errorDetail: error }),
});
const deltaBytes = (one: Said): Uint8Array =>
  toBinary(
    DeltaDiscoveryRequestSchema,
    create(DeltaDiscoveryRequestSchema, {
      ...common(one),
      resourceNamesSubscribe: one.names,
      resourceNamesUnsubscribe: one.unsubscribe,
      initialResourceVersions: one.versions,
    }),
  );
const sotwBytes = (one: Said): Uint8Array =>
  toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...common(one), resourceNames: one.names }));

/** What was read, without the node, which stays bytes. */
const plain = ({ node: _, initialVersions, names: list, unsubscribe, ...rest }: DiscoveryRequest) => ({
  ...rest,
  names: [...list],
  unsubscribe: [...unsubscribe],
  versions: Object.fromEntries(initialVersions),
});

describe("discovery requests", () => {
  it("that only accept a response are the bytes that are foreseen", () => {
    holds(
      fc.property(text, text, (typeUrl, nonce) => {
        const bytes = toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl, responseNonce: nonce }));
        expect(Buffer.from(bytes)).toEqual(deltaAck(typeUrl, nonce));
      }),
      { numRuns: RUNS },
    );
  });

  it("are read as they were written", () => {
    holds(
      fc.property(said, (one) => {
        const { node: _, ...rest } = one;
        expect(plain(readDeltaRequest(deltaBytes(one)))).toEqual(rest);
        expect(plain(readSotwRequest(sotwBytes(one)))).toEqual({ ...rest, unsubscribe: [], versions: {} });
        expect([requestedType(deltaBytes(one), "delta"), requestedType(sotwBytes(one), "sotw")]).toEqual([rest.typeUrl, rest.typeUrl]);
      }),
      { numRuns: RUNS },
    );
  });

  for (const [variant, read] of Object.entries(READERS)) {
    it(`${variant}: noise is read or refused, and nothing else`, () => {
      const noise = fc.oneof(
        fc.uint8Array({ maxLength: 200 }),
        fc
          .tuple(said, fc.nat(), fc.nat(255))
          .map(([one, at, byte]) => withByte(variant === "delta" ? deltaBytes(one) : sotwBytes(one), at, byte)),
        fc.tuple(said, fc.nat()).map(([one, at]) => cut(variant === "delta" ? deltaBytes(one) : sotwBytes(one), at)),
      );
      holds(
        fc.property(noise, (bytes) => {
          expect(typeof requestedType(bytes, variant === "delta" ? "delta" : "sotw")).toBe("string");
          try {
            const request = read(bytes);
            for (const value of [request.typeUrl, request.nonce, ...request.names]) expect(typeof value).toBe("string");
          } catch (error) {
            expect(error).toBeInstanceOf(Error);
            // The decoder of texts has a TypeError for bytes that are no text; any other one would be a slip of ours.
            if (error instanceof TypeError) expect(error.message).toContain("encoded data was not valid");
          }
        }),
        { numRuns: RUNS },
      );
    });
  }
});

function withByte(bytes: Uint8Array, at: number, byte: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  if (copy.length > 0) copy[at % copy.length] = byte;
  return copy;
}

const cut = (bytes: Uint8Array, at: number): Uint8Array => bytes.subarray(0, at % (bytes.length + 1));
