import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { BackOff } from "./back-off.ts";

describe("BackOff", () => {
  it("doubles up to the limit, and begins anew after a success", () => {
    const backOff = new BackOff({ firstMs: 100, mostMs: 500, random: () => 1 });
    assert.deepEqual(
      Array.from({ length: 5 }, () => backOff.next()),
      [100, 200, 400, 500, 500],
    );
    backOff.reset();
    assert.equal(backOff.next(), 100);
  });

  it("stays between half and the whole", () => {
    assert.equal(new BackOff({ firstMs: 100, mostMs: 500, random: () => 0 }).next(), 50);
    const waits = Array.from({ length: 200 }, () => new BackOff({ firstMs: 100, mostMs: 500 }).next());
    assert.ok(waits.every((wait) => wait >= 50 && wait <= 100));
    assert.ok(new Set(waits).size > 1);
  });

  it("does not grow without bound in a long outage", () => {
    const backOff = new BackOff({ firstMs: 1, mostMs: 30_000, random: () => 1 });
    for (let failures = 0; failures < 10_000; failures++) backOff.next();
    assert.equal(backOff.next(), 30_000);
  });
});
