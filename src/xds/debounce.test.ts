import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { createDebounce } from "./debounce.ts";

function setUp() {
  const clock = manualClock();
  const passed: [at: number, batch: string][] = [];
  const debounce = createDebounce<string>({ afterMs: 100, maxMs: 1_000 }, clock, (batch) => passed.push([clock.monotonic(), batch.join()]));
  return { clock, passed, debounce };
}

describe("debounce", () => {
  it("passes the first change at once, and what follows closely together", () => {
    const { clock, passed, debounce } = setUp();
    debounce.note("a");
    clock.advance(50);
    debounce.note("b");
    clock.advance(50);
    debounce.note("c");
    clock.advance(300);
    debounce.note("d");
    assert.deepEqual(passed, [
      [0, "a"],
      [200, "b,c"],
      [400, "d"],
    ]);
  });

  it("lets nothing wait longer than the maximum", () => {
    const { clock, passed, debounce } = setUp();
    for (let turn = 0; turn < 60; turn += 1) {
      debounce.note(String(turn));
      clock.advance(50);
    }
    assert.deepEqual(
      passed.map(([at]) => at),
      [0, 1_050, 2_050],
    );
    clock.advance(200);
    assert.equal(passed.map(([, batch]) => batch).join(), Array.from({ length: 60 }, (_, turn) => turn).join());
  });

  it("passes urgent changes at once and leaves the others waiting", () => {
    const { clock, passed, debounce } = setUp();
    debounce.note("a");
    debounce.note("b");
    debounce.note("endpoint", true);
    clock.advance(100);
    assert.deepEqual(passed, [
      [0, "a"],
      [0, "endpoint"],
      [100, "b"],
    ]);
  });

  it("can be flushed and stopped", () => {
    const { clock, passed, debounce } = setUp();
    debounce.note("a");
    debounce.note("b");
    debounce.flush();
    debounce.note("c");
    debounce.stop();
    clock.advance(5_000);
    assert.deepEqual(passed, [
      [0, "a"],
      [0, "b"],
    ]);
  });
});
