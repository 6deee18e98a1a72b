import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { GRPC_STATUS } from "./grpc-status.ts";
import { MessageReader } from "./message-reader.ts";

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

describe("MessageReader", () => {
  it("gives the messages back however they are cut", () => {
    holds(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 })),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
        (messages, cuts) => {
          const bytes = Buffer.concat(messages.map(framed));
          const reader = new MessageReader(40);
          const got: Buffer[] = [];
          for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
            const size = cuts[turn % cuts.length] ?? 1;
            assert.equal(
              reader.take(bytes.subarray(at, at + size), (message) => got.push(Buffer.from(message))),
              undefined,
            );
            at += size;
          }
          assert.deepEqual(
            got.map((message) => [...message]),
            messages.map((message) => [...message]),
          );
        },
      ),
    );
  });

  it("refuses a message over the limit as soon as it is announced", () => {
    const fault = new MessageReader(10).take(Buffer.from([0, 0, 0, 0, 11]), () => assert.fail("there is no message"));
    assert.equal(fault?.status, GRPC_STATUS.RESOURCE_EXHAUSTED);
  });

  it("refuses a compressed message", () => {
    const fault = new MessageReader(10).take(Buffer.from([1, 0, 0, 0, 0]), () => assert.fail("it cannot be read"));
    assert.equal(fault?.status, GRPC_STATUS.UNIMPLEMENTED);
  });
});
