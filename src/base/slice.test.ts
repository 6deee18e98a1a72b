import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { createSlice, finishSliced, runSliced } from "./slice.ts";

/** What nobody else on the loop should wait longer than. */
const LIMIT_MS = 20;

interface Load {
  readonly steps: number;
  readonly stepMs: number;
  /** What everybody else does in a turn. */
  readonly othersMs?: number;
}

/** Work in steps that take a time each, beside which the turns of the loop are counted. */
function workBesideTurns({ steps, stepMs, othersMs = 0 }: Load) {
  const clock = manualClock();
  let turn = 0;
  let over = false;
  const count = (): void => {
    turn += 1;
    clock.advance(othersMs);
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  const msOfTurn = new Map<number, number>();
  const doOne = (): void => {
    clock.advance(stepMs);
    msOfTurn.set(turn, (msOfTurn.get(turn) ?? 0) + stepMs);
  };
  function* work(): Generator<void, string> {
    for (let step = 0; step < steps; step += 1) {
      doOne();
      yield;
    }
    return "done";
  }
  return {
    clock,
    work,
    doOne,
    /** Ends the count; gives the work of each turn in ms. */
    end(): readonly number[] {
      over = true;
      return [...msOfTurn.values()];
    },
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

function assertDivided(turns: readonly number[], totalMs: number): void {
  assert.equal(sum(turns), totalMs);
  assert.ok(Math.max(...turns) <= LIMIT_MS, `${turns.join(", ")} ms`);
}

describe("long work in slices", () => {
  it("gives way within the limit where nothing else is said, and tells how long each slice was", async () => {
    const { clock, work, end } = workBesideTurns({ steps: 300, stepMs: 1 });
    const measured: number[] = [];
    await runSliced(work(), clock, { measured: (ms) => measured.push(ms) });
    assertDivided(end(), 300);
    assertDivided(measured, 300);
  });

  it("gives way when the slice that was asked for is used up, and not before", async () => {
    const { clock, work, end } = workBesideTurns({ steps: 20, stepMs: 3 });
    const measured: number[] = [];
    await runSliced(work(), clock, { sliceMs: 8, measured: (ms) => measured.push(ms) });
    assert.deepEqual(end(), [9, 9, 9, 9, 9, 9, 6]);
    assert.deepEqual(measured, [9, 9, 9, 9, 9, 9, 6]);
  });

  it("counts a slice from when its turn began: what others took meanwhile is theirs", async () => {
    const { clock, work, end } = workBesideTurns({ steps: 4, stepMs: 5, othersMs: 1_000 });
    const measured: number[] = [];
    await runSliced(work(), clock, { sliceMs: 10, measured: (ms) => measured.push(ms) });
    assert.deepEqual(end(), [10, 10]);
    assert.deepEqual(measured, [10, 10, 0]);
  });

  it("that comes to a result gives way too", async () => {
    const { clock, work, end } = workBesideTurns({ steps: 300, stepMs: 1 });
    assert.equal(await finishSliced(work(), clock), "done");
    assertDivided(end(), 300);
  });

  it("that asks between its steps is told to wait when the slice is used up", async () => {
    const { clock, doOne, end } = workBesideTurns({ steps: 300, stepMs: 1 });
    const pause = createSlice(clock);
    assert.equal(pause(), undefined);
    for (let step = 0; step < 300; step += 1) {
      doOne();
      const wait = pause();
      if (wait !== undefined) await wait;
    }
    assertDivided(end(), 300);
  });

  it("fails as its steps fail", async () => {
    const clock = manualClock();
    const failing = function* (): Generator<void, string> {
      yield;
      throw new Error("broken");
    };
    await assert.rejects(runSliced(failing(), clock), /broken/);
    await assert.rejects(finishSliced(failing(), clock), /broken/);
  });
});
