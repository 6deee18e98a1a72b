import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { DeltaDiscoveryRequestSchema } from "../gen/envoy/service/discovery/v3/discovery_pb.js";
import { readDeltaRequest } from "./discovery-request.ts";
import { type RequestLists, sharedLists } from "./request-lists.ts";

type Said = readonly (readonly [string, string])[];

const bytesOf = (said: Said): Uint8Array =>
  toBinary(
    DeltaDiscoveryRequestSchema,
    create(DeltaDiscoveryRequestSchema, {
      initialResourceVersions: Object.fromEntries(said),
      resourceNamesSubscribe: said.map(([name]) => name),
    }),
  );
const read = (said: Said, lists: RequestLists) => readDeltaRequest(bytesOf(said), lists);

/** Entries one after the other, and where each stands. */
function rangesOf(entries: readonly string[]): [bytes: Uint8Array, ranges: readonly number[]] {
  const parts = entries.map((entry) => Buffer.from(entry));
  let at = 0;
  const ranges = parts.flatMap(({ length }) => {
    at += length;
    return [at - length, at];
  });
  return [Buffer.concat(parts), ranges];
}

const many: Said = Array.from({ length: 40 }, (_, index) => [`outbound|80||svc-${index}.shop`, `v${index}`] as const);
const swapped: Said = many.map(([name, version], index) => (index < 2 ? [name, `v${1 - index}`] : [name, version]));

describe("lists of requests", () => {
  it("are read as they were written, shared or not", () => {
    const lists = sharedLists();
    const long = fc
      .integer({ min: 100, max: 300 })
      .chain((length) => fc.string({ minLength: length, unit: fc.constantFrom("a", "\u0012", "\u0001", "é") }));
    const name = fc.oneof(fc.string({ minLength: 1, unit: "binary" }), long);
    const someSaid = fc.uniqueArray(fc.tuple(name, fc.oneof(fc.string(), long)), {
      selector: ([name]) => name,
      maxLength: 60,
    });
    holds(
      fc.property(someSaid, (said) => {
        const versions = new Map(Object.entries(Object.fromEntries(said)));
        for (const request of [readDeltaRequest(bytesOf(said)), read(said, lists), read(said, lists)]) {
          expect(request.initialVersions).toEqual(versions);
          expect(new Set(request.names)).toEqual(new Set(versions.keys()));
        }
      }),
    );
  });

  it("are one object for those who say the same in another order", () => {
    const lists = sharedLists();
    const first = read(many, lists);
    const again = read(many.toReversed(), lists);
    expect(again.initialVersions).toBe(first.initialVersions);
    expect(again.names).toBe(first.names);
  });

  it("are told apart where one entry differs, is missing, or two have changed places", () => {
    const lists = sharedLists();
    const first = read(many, lists);
    for (const other of [many.slice(1), [...many.slice(1), ["outbound|80||svc-0.shop", "v"] as const], swapped]) {
      const { initialVersions } = read(other, lists);
      expect(initialVersions).not.toBe(first.initialVersions);
      expect(initialVersions).toEqual(new Map(other));
    }
  });

  it("are told apart by each byte of an entry, and by zeros at its end", () => {
    const lists = sharedLists();
    const names = Array.from({ length: 9 }, (_, length) => "abcdefghi".slice(0, length));
    const others = names.flatMap((name) => [
      `${name}x`,
      `${name}\0`,
      `${name}\0\0\0`,
      `x${name}`,
      ...[...name].map((_, at) => name.replace(name.charAt(at), "y")),
    ]);
    const rest = many.map(([name]) => name);
    for (const name of new Set([...names, ...others]))
      expect(lists.names(...rangesOf([...rest, name])).at(-1), JSON.stringify(name)).toBe(name);
  });

  it("that go beyond the end of the request are refused", () => {
    const bytes = toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { resourceNamesSubscribe: ["web"] }));
    expect(() => readDeltaRequest(bytes.subarray(0, bytes.length - 1), sharedLists())).toThrow("beyond the end");
  });
});
