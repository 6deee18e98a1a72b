import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import {
  type DnsQuery,
  FLAG_TRUNCATED,
  questionKey,
  RCODE,
  readHeader,
  readQuery,
  writeAnswer,
  writeQuery,
  writeRefusal,
} from "./dns-message.ts";

const label = fc.stringMatching(/^[A-Za-z0-9_-]{1,63}$/);
const name = fc
  .array(label, { maxLength: 4 })
  .map((labels) => labels.join("."))
  .filter((text) => text.length <= 253);
const uint16 = fc.integer({ min: 0, max: 0xffff });
const query: fc.Arbitrary<DnsQuery> = fc.record(
  {
    id: uint16,
    opcode: fc.integer({ min: 0, max: 15 }),
    recursionDesired: fc.boolean(),
    question: fc.record({ name, type: uint16, class: uint16 }, { noNullPrototype: true }),
    udpSize: fc.option(fc.integer({ min: 512, max: 0xffff }), { nil: undefined }),
  },
  { noNullPrototype: true },
);

const asked = (over: Partial<DnsQuery> = {}): DnsQuery => ({
  id: 7,
  opcode: 0,
  recursionDesired: true,
  question: { name: "web.shop", type: 1, class: 1 },
  udpSize: undefined,
  ...over,
});
const addresses = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ type: "A" as const, name: "web.shop", ttl: 30, address: Uint8Array.of(10, 0, 0, index) }));

describe("messages of DNS", () => {
  it("are read as they were written", () => holds(fc.property(query, (one) => assert.deepEqual(readQuery(writeQuery(one)), one))));

  it("of any bytes are read or refused, never a throw", () =>
    holds(
      fc.property(
        fc.oneof(fc.uint8Array({ maxLength: 600 }), fc.tuple(query, fc.array(fc.tuple(fc.nat(300), fc.nat(255)))).map(mutated)),
        (bytes) => {
          readQuery(bytes);
          questionKey(bytes);
          readHeader(bytes);
        },
      ),
    ));

  it("with names that point at themselves or forward are no queries", () => {
    const header = writeQuery(asked()).subarray(0, 12);
    for (const pointer of [
      [0xc0, 12],
      [0xc0, 14],
      [0xff, 0xff],
      [1, 97, 0xc0, 12],
    ])
      assert.equal(readQuery(Buffer.concat([header, Buffer.from([...pointer, 0, 1, 0, 1])])), undefined);
  });

  it("keep within the limit, and say so where something was left out", () =>
    holds(
      fc.property(fc.nat(200), fc.integer({ min: 60, max: 2_000 }), (count, limit) => {
        const bytes = writeAnswer(asked(), { rcode: RCODE.NOERROR, authoritative: true, records: addresses(count) }, limit);
        assert.ok(bytes.length <= limit);
        const written = bytes.readUInt16BE(6);
        assert.equal((bytes.readUInt16BE(2) & FLAG_TRUNCATED) !== 0, written < count);
        assert.equal(bytes.length, 26 + 16 * written);
      }),
    ));

  it("repeat the question and answer EDNS with EDNS", () => {
    const bytes = writeAnswer(asked({ udpSize: 4_096 }), { rcode: RCODE.NOERROR, authoritative: true, records: [] }, 512);
    assert.equal(questionKey(bytes), "web.shop 1 1");
    assert.equal(bytes.readUInt16BE(10), 1);
    assert.deepEqual(readHeader(bytes), { id: 7, isResponse: true, truncated: false, rcode: 0 });
    assert.deepEqual(readHeader(writeRefusal(9, RCODE.FORMERR)), { id: 9, isResponse: true, truncated: false, rcode: 1 });
  });
});

function mutated([one, changes]: [DnsQuery, [number, number][]]): Uint8Array {
  const bytes = writeQuery(one);
  for (const [at, value] of changes) bytes[at % bytes.length] = value;
  return bytes;
}
