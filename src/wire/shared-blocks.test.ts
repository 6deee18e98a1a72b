import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { messageSize, SharedBlocks } from "./shared-blocks.ts";

/** Parts as resources have them: a few hundred bytes to a few thousand, all different. */
const partsOf = (sizes: readonly number[]): readonly Buffer[] => sizes.map((size, index) => Buffer.alloc(size, index + 1));

const sizes = fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 200 });

describe("SharedBlocks", () => {
  it("gives the parts in order, whatever it shares", () => {
    holds(
      fc.property(sizes, sizes, (some, others) => {
        const blocks = new SharedBlocks();
        const parts = partsOf(some);
        const mixed = [...partsOf(others), ...parts, ...parts.slice(3), ...partsOf(others)];
        for (const wanted of [parts, mixed, parts]) {
          const message = blocks.assemble([wanted]);
          assert.equal(messageSize(message), messageSize(wanted));
          assert.ok(Buffer.concat(message).equals(Buffer.concat(wanted)));
        }
      }),
    );
  });

  it("copies but a little for a message that differs in one part", () => {
    const blocks = new SharedBlocks();
    const parts = partsOf(Array.from({ length: 9_000 }, (_, index) => 300 + ((index * 7_919) % 997)));
    const first = new Set(blocks.assemble([parts]));
    const second = blocks.assemble([[...parts.slice(0, 1_000), Buffer.alloc(500), ...parts.slice(1_000)]]);
    const copied = messageSize(second.filter((bytes) => !first.has(bytes)));
    assert.ok(copied < messageSize(parts) / 5, `${copied} of ${messageSize(parts)}`);
  });

  it("shares what stands beside something else, where that is a section of its own", () => {
    const blocks = new SharedBlocks();
    const parts = partsOf(Array.from({ length: 900 }, (_, index) => 300 + ((index * 7_919) % 997)));
    const first = new Set(blocks.assemble([[Buffer.alloc(40, 1)], parts]));
    const second = blocks.assemble([[Buffer.alloc(50, 2)], parts]);
    const copied = messageSize(second.filter((bytes) => !first.has(bytes)));
    assert.ok(copied < messageSize(parts) / 4, `${copied} of ${messageSize(parts)}`);
  });

  it("keeps what differs between classes, however many there are, for the next message to each", () => {
    const blocks = new SharedBlocks();
    const parts = partsOf(Array.from({ length: 900 }, (_, index) => 300 + ((index * 7_919) % 997)));
    const classes = Array.from({ length: 20 }, (_, index) => parts.toSpliced(index * 5, 5));
    const before = new Set(classes.flatMap((own) => blocks.assemble([own])));
    const changed = Buffer.alloc(500);
    const after = new Set(classes.flatMap((own) => blocks.assemble([own.with(-1, changed)])));
    const copied = messageSize([...after].filter((bytes) => !before.has(bytes)));
    assert.ok(copied < messageSize([...before]) / 2, `${copied} of ${messageSize([...before])}`);
  });

  it("forgets what was used longest ago where there is too much, and all when it is told to", () => {
    const blocks = new SharedBlocks();
    const [often, once] = [partsOf([50_000, 50_000]), partsOf([50_000, 50_001])];
    const [kept] = blocks.assemble([often]);
    const [gone] = blocks.assemble([once]);
    for (let more = 0; more < 30; more++) {
      blocks.assemble([[Buffer.alloc(1_000_000)]]);
      assert.equal(blocks.assemble([often])[0], kept);
    }
    assert.notEqual(blocks.assemble([once])[0], gone);
    blocks.clear();
    assert.notEqual(blocks.assemble([often])[0], kept);
  });
});
