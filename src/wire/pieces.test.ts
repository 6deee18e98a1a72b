import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { Pieces } from "./pieces.ts";

/** All that waits, in the pieces in which it is given back. */
function drained(pieces: Pieces): readonly Buffer[] {
  const found: Buffer[] = [];
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) found.push(piece);
  return found;
}

describe("Pieces", () => {
  it("gives back what it was given, in order, however it is cut and taken", () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.oneof(fc.nat(30), fc.nat(5_000)).map((length) => ({ length })) },
      { weight: 2, arbitrary: fc.constant("shift" as const) },
      { weight: 1, arbitrary: fc.constant("takeAll" as const) },
    );
    holds(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const pieces = new Pieces();
        const [given, taken]: [Buffer[], Buffer[]] = [[], []];
        for (const one of steps) {
          if (one === "shift") taken.push(pieces.shift() ?? Buffer.alloc(0));
          else if (one === "takeAll") taken.push(pieces.takeAll());
          else {
            const piece = Buffer.alloc(one.length, given.length);
            given.push(piece);
            pieces.push(piece);
          }
        }
        assert.equal(Buffer.concat(taken).length + pieces.size, Buffer.concat(given).length);
        assert.deepEqual(Buffer.concat([...taken, ...drained(pieces)]), Buffer.concat(given));
        assert.equal(pieces.size, 0);
      }),
    );
  });

  it("keeps of small pieces neither each by itself nor the reads that brought them", () => {
    const pieces = new Pieces();
    const bytes = 60_000;
    for (let at = 0; at < bytes; at++) pieces.push(Buffer.alloc(16_384).subarray(at % 16_384, (at % 16_384) + 1));
    const memory = new Set(drained(pieces).map(({ buffer }) => buffer));
    assert.ok([...memory].reduce((sum, { byteLength }) => sum + byteLength, 0) < 2 * bytes);
    assert.ok(memory.size < 20);
  });

  it("copies nothing that is taken at once", () => {
    const pieces = new Pieces();
    const piece = Buffer.from("whole");
    pieces.push(piece);
    assert.equal(pieces.takeAll(), piece);
    pieces.push(piece);
    assert.equal(pieces.shift(), piece);
  });
});
