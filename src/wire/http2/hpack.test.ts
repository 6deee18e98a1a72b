import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { Http2Fault } from "./frame.ts";
import { HeaderDecoder, headerBlock } from "./hpack.ts";

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex");
const pairs = (decoder: HeaderDecoder, block: Uint8Array): readonly (readonly [string, string])[] =>
  decoder.decode(block).map(({ name, value }) => [name, value] as const);

/** Requests of one connection, each with what it refers to of those before (RFC 7541, C.3 and C.4). */
const REQUESTS = [
  {
    headers: [
      [":method", "GET"],
      [":scheme", "http"],
      [":path", "/"],
      [":authority", "www.example.com"],
    ],
    plain: "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
    packed: "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
  },
  {
    headers: [
      [":method", "GET"],
      [":scheme", "http"],
      [":path", "/"],
      [":authority", "www.example.com"],
      ["cache-control", "no-cache"],
    ],
    plain: "8286 84be 5808 6e6f 2d63 6163 6865",
    packed: "8286 84be 5886 a8eb 1064 9cbf",
  },
  {
    headers: [
      [":method", "GET"],
      [":scheme", "https"],
      [":path", "/index.html"],
      [":authority", "www.example.com"],
      ["custom-key", "custom-value"],
    ],
    plain: "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    packed: "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
  },
] as const;

describe("headers", () => {
  for (const form of ["plain", "packed"] as const) {
    it(`of one request after the other are read, ${form}`, () => {
      const decoder = new HeaderDecoder();
      for (const request of REQUESTS) assert.deepEqual(pairs(decoder, bytes(request[form])), request.headers);
    });
  }

  it("are read as they were written", () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,200}$/);
    const value = fc.stringMatching(/^[ -~]{0,400}$/);
    holds(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 20 }), (headers) => {
        assert.deepEqual(pairs(new HeaderDecoder(), headerBlock([[":status", "200"], ...headers])), [[":status", "200"], ...headers]);
      }),
    );
  });

  it("push out the oldest where there is no more room for them", () => {
    const decoder = new HeaderDecoder();
    const long = Buffer.alloc(2_000, "x");
    const kept = (name: string): Buffer => Buffer.concat([bytes("40 01"), Buffer.from(name), bytes("7f d10e"), long]);
    for (const name of ["a", "b", "c"]) decoder.decode(kept(name));
    assert.deepEqual(
      pairs(decoder, bytes("be bf")).map(([name]) => name),
      ["c", "b"],
    );
    assert.throws(() => decoder.decode(bytes("c0")), Http2Fault);
    assert.deepEqual(decoder.decode(bytes("20")), []);
    assert.throws(() => decoder.decode(bytes("be")), Http2Fault);
  });

  const broken: readonly [what: string, hex: string][] = [
    ["a number that nothing has", "80"],
    ["a number beyond the table", "ff 20"],
    ["a text that is cut off", "00 05 61"],
    ["a number without end", "7f ff ff ff ff ff 00"],
    ["a table larger than ours", "3f e2 1f"],
    ["a change of the table after a header", "82 20"],
    ["padding that is too long", "00 81 ff 01 61"],
    ["padding with a zero", "00 82 1c 64 81 fe"],
    ["the mark for the end", "00 84 ff ff ff ff 01 61"],
  ];
  for (const [what, hex] of broken)
    it(`are refused: ${what}`, () => assert.throws(() => new HeaderDecoder().decode(bytes(hex)), Http2Fault));

  it("are refused where they come to more than is taken, however small they are packed", () => {
    const decoder = new HeaderDecoder();
    decoder.decode(Buffer.concat([bytes("40 01 61 7f d10e"), Buffer.alloc(2_000, "x")]));
    assert.throws(() => decoder.decode(Buffer.alloc(40, 0xbe)), /more headers/);
  });

  it("whatever comes, are read or refused", () => {
    holds(
      fc.property(fc.uint8Array({ maxLength: 300 }), (block) => {
        try {
          new HeaderDecoder().decode(block);
        } catch (error) {
          assert.ok(error instanceof Http2Fault);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
