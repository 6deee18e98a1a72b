import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { createDebounce } from "./debounce.ts";

/** A debounce that passes on, in batches, the changes `change` was told of; each push takes as long as said. */
function setUp({ pushMs = 0, maxMs = 1_000 } = {}) {
  const clock = manualClock();
  const passed: [at: number, batch: string][] = [];
  let batch: string[] = [];
  const debounce = createDebounce({ afterMs: 100, maxMs }, clock, async () => {
    passed.push([clock.monotonic(), batch.join()]);
    batch = [];
    await clock.sleep(pushMs);
  });
  const change = (name: string): void => {
    batch.push(name);
    debounce.note();
  };
  /** Changes that are never quiet for long enough. */
  const keepChanging = async (turns: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn += 1) {
      change(String(turn));
      clock.advance(50);
      await Promise.resolve(); // Who slept goes on.
      await Promise.resolve();
    }
  };
  return { clock, passed, debounce, change, keepChanging, times: () => passed.map(([at]) => at) };
}

describe("debounce", () => {
  it("passes the first change at once, and what follows closely together", () => {
    const { clock, passed, change } = setUp();
    change("a");
    clock.advance(50);
    change("b");
    clock.advance(50);
    change("c");
    clock.advance(300);
    change("d");
    assert.deepEqual(passed, [
      [0, "a"],
      [200, "b,c"],
      [400, "d"],
    ]);
  });

  it("gathers for some quiet times where it is never quiet and pushes take no time, and loses nothing", async () => {
    const { clock, passed, keepChanging, times } = setUp({ maxMs: 10_000 });
    await keepChanging(60);
    assert.deepEqual(times(), [0, 550, 1_050, 1_550, 2_050, 2_550]);
    clock.advance(200);
    assert.equal(passed.map(([, batch]) => batch).join(), Array.from({ length: 60 }, (_, turn) => turn).join());
  });

  it("gathers for longer where pushes take long", async () => {
    const { keepChanging, times } = setUp({ pushMs: 400, maxMs: 10_000 });
    await keepChanging(80);
    assert.deepEqual(times(), [0, 1_250, 2_450, 3_650]);
  });

  it("lets nothing wait longer than the maximum", async () => {
    const { keepChanging, times } = setUp({ pushMs: 900, maxMs: 1_000 });
    await keepChanging(60);
    assert.deepEqual(times(), [0, 1_050, 2_050]);
  });

  it("can be flushed and stopped", () => {
    const { clock, passed, debounce, change } = setUp();
    change("a");
    change("b");
    debounce.flush();
    change("c");
    debounce.stop();
    clock.advance(5_000);
    assert.deepEqual(passed, [
      [0, "a"],
      [0, "b"],
    ]);
  });
});
