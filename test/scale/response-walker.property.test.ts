import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { ResponseWalker } from "../../bench/response-walker.ts";
import { SeenResources } from "../../bench/seen-resources.ts";
import { deltaResponseBytes } from "../../src/wire/delta-frames.ts";
import { bytesField, messageField, textField } from "../../src/wire/field-writer.ts";
import { holds } from "../support/holds.ts";

const TYPE = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const MARKER = "marker-";

interface Resource {
  readonly name: string;
  readonly size: number;
  readonly marker: number;
  readonly order: "ours" | "by number" | "without version";
}

interface Response {
  readonly resources: readonly Resource[];
  readonly removed: readonly string[];
}

const markerOf = ({ marker }: Resource): string => `${MARKER}${String(marker).padStart(3, "0")}`;
const versionOf = (resource: Resource): string => `v-${resource.name}-${resource.size}-${resource.marker}-${resource.order}`;

/** Ours puts the content last; others write fields in order, and some give no version. */
function resourceBytes(resource: Resource): Uint8Array {
  const body = Buffer.concat([Buffer.from(resource.name), Buffer.alloc(resource.size, "."), Buffer.from(markerOf(resource))]);
  const any = messageField(2, [textField(1, TYPE), bytesField(2, body)]);
  const [name, version] = [textField(3, resource.name), textField(1, versionOf(resource))];
  if (resource.order === "ours") return Buffer.concat([name, version, any]);
  return Buffer.concat(resource.order === "by number" ? [version, any, name] : [any, name]);
}

function framed({ resources, removed }: Response, nonce: string): Buffer {
  const message = deltaResponseBytes({ typeUrl: TYPE, nonce, resources: resources.map(resourceBytes), removed });
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

const RESOURCE: fc.Arbitrary<Resource> = fc.record({
  name: fc.constantFrom("a", "b", "a-longer-name-than-others"),
  size: fc.constantFrom(0, 10, 700, 40_000),
  marker: fc.nat({ max: 5 }),
  order: fc.constantFrom("ours", "by number", "without version"),
});
const RESPONSE: fc.Arbitrary<Response> = fc.record({
  resources: fc.array(RESOURCE, { maxLength: 6 }),
  removed: fc.array(fc.constantFrom("x", "y"), { maxLength: 2 }),
});

describe("a walk over responses", () => {
  it("finds what they say, however they are cut and whoever is sent them first", () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 20 });
    holds(
      fc.property(fc.array(RESPONSE, { minLength: 1, maxLength: 4 }), fc.tuple(cuts, cuts, cuts), (responses, cutsOfEach) => {
        const seen = new SeenResources();
        seen.lookFor({ text: MARKER, length: MARKER.length + 3 });
        const bytes = Buffer.concat(responses.map((response, index) => framed(response, `nonce-${index}`)));
        const streams = cutsOfEach.map((cut) => {
          const heard: unknown[] = [];
          const walker = new ResponseWalker(seen, {
            message: ({ typeUrl, resources, removed, markers }, nonce, size) =>
              heard.push([typeUrl, nonce, size, resources.map(({ name, marker }) => [name, marker]), removed, [...markers].sort()]),
          });
          return { heard, walker, cut, at: 0, turn: 0 };
        });
        // All are sent it in turns, each in pieces of its own.
        while (streams.some(({ at }) => at < bytes.length))
          for (const stream of streams) {
            const length = stream.cut[stream.turn++ % stream.cut.length] ?? 1;
            if (stream.at < bytes.length) stream.walker.take(Buffer.from(bytes.subarray(stream.at, stream.at + length)));
            stream.at += length;
          }
        const want = responses.map((response, index) => [
          TYPE,
          `nonce-${index}`,
          framed(response, `nonce-${index}`).length - 5,
          response.resources.map((one) => [one.name, markerOf(one)]),
          response.removed,
          [...new Set(response.resources.map(markerOf))].sort(),
        ]);
        for (const { heard } of streams) assert.deepEqual(heard, want);
      }),
      { numRuns: 300 },
    );
  });
});
