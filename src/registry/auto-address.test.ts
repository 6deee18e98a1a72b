import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { parseCidr } from "../base/address.ts";
import { type Applicant, allocateSlots, slotAddress } from "./auto-address.ts";

const applicants = (count: number): readonly Applicant[] =>
  Array.from({ length: count }, (_, i) => ({ key: `ns-${i % 7}/host-${i}.test`, createdAt: 0 }));

describe("allocateSlots", () => {
  it("gives each its own slot, whatever the order they come in", () => {
    holds(
      fc.property(fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 200 }), fc.nat(), (keys, seed) => {
        const all = keys.map((key) => ({ key, createdAt: 0 }));
        const slots = allocateSlots(all);
        assert.equal(new Set(slots.values()).size, keys.length);
        const turned = all.map((_, i) => all[(i + seed) % all.length]).filter((one) => one !== undefined);
        assert.deepEqual(allocateSlots(turned), slots);
      }),
    );
  });

  it("a younger applicant never moves an older one", () => {
    const old = applicants(5000);
    const before = allocateSlots(old);
    const after = allocateSlots([...old, ...Array.from({ length: 500 }, (_, i) => ({ key: `new/${i}`, createdAt: 1 }))]);
    for (const [key, slot] of before) assert.equal(after.get(key), slot);
  });

  it("one applicant of the same age moves next to none of a thousand others", () => {
    const before = allocateSlots(applicants(1000));
    for (let i = 0; i < 50; i++) {
      const after = allocateSlots([...applicants(1000), { key: `a/extra-${i}`, createdAt: 0 }]);
      const moved = [...before].filter(([key, slot]) => after.get(key) !== slot);
      assert.ok(moved.length <= 2, `${moved.length} moved`);
    }
  });

  it("fills the range and then gives nothing", () => {
    const slots = allocateSlots(applicants(65_100));
    assert.equal(slots.size, 65_024);
    assert.equal(new Set(slots.values()).size, 65_024);
  });
});

describe("slotAddress", () => {
  const table: readonly [range: string, slot: number, want: string][] = [
    ["240.240.0.0/16", 0, "240.240.0.1"],
    ["240.240.0.0/16", 253, "240.240.0.254"],
    ["240.240.0.0/16", 254, "240.240.1.1"],
    ["240.240.0.0/16", 65_023, "240.240.255.254"],
    ["2001:2::/48", 254, "2001:2::101"],
  ];
  for (const [range, slot, want] of table) {
    it(`slot ${slot} of ${range} is ${want}`, () => {
      const cidr = parseCidr(range);
      assert.ok(cidr !== undefined);
      assert.equal(slotAddress(cidr, slot), want);
    });
  }
});
