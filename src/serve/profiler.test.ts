import { assert, describe, it } from "vitest";
import { readProfile } from "../../test/support/pprof.ts";
import { systemClock } from "../base/clock.ts";
import { nextTurn } from "../base/slice.ts";
import { createProfiler } from "./profiler.ts";

/** Calls itself, so that it is not made part of who calls it. */
function burnTime(depth: number): number {
  let sum = 0;
  for (let n = 0; n < 500_000; n++) sum += Math.sqrt(n);
  return depth === 0 ? sum : sum + burnTime(depth - 1);
}

const keepMemory = (): readonly number[] => Array.from({ length: 20_000 }, (_, n) => n + 0.5);

/** Does something again and again while a profile is taken. */
async function during(taken: Promise<Buffer | undefined>, work: () => unknown) {
  let isDone = false;
  void taken.finally(() => {
    isDone = true;
  });
  for (; !isDone; await nextTurn()) work();
  const profile = await taken;
  assert.isDefined(profile);
  return readProfile(profile);
}

describe("createProfiler", () => {
  it("tells which functions took time, called by whom", async () => {
    const { types, samples, firstText, durationNanos } = await during(createProfiler(systemClock).take("cpu", 0.3), () => burnTime(5));
    assert.equal(firstText, "");
    assert.deepEqual(types, ["samples in count", "cpu in nanoseconds"]);
    const burning = samples.filter(({ stack }) => stack[0] === "burnTime");
    const nanos = burning.reduce((sum, { values: [, spent = 0] }) => sum + spent, 0);
    assert.isAbove(nanos, 10_000_000);
    assert.isAtMost(nanos, durationNanos);
    assert.isTrue(burning.every(({ stack, values }) => stack.at(-1) !== "burnTime" && values.length === 2));
    assert.isFalse(samples.some(({ stack }) => stack.includes("(idle)") || stack.includes("(root)")));
  });

  it("tells which functions allocated what is still in use", async () => {
    const kept: unknown[] = [];
    const { types, samples } = await during(createProfiler(systemClock).take("heap", 0.2), () => {
      if (kept.length < 100) kept.push(keepMemory());
    });
    assert.deepEqual(types, ["inuse_space in bytes"]);
    const bytes = samples.filter(({ stack }) => stack.includes("keepMemory")).reduce((sum, { values: [size = 0] }) => sum + size, 0);
    assert.isAbove(bytes, kept.length * 20_000);
  });

  it("takes one profile at a time", async () => {
    const profiler = createProfiler(systemClock);
    const first = profiler.take("cpu", 0.1);
    assert.isUndefined(await profiler.take("heap", 0.1));
    assert.isDefined(await first);
    assert.isDefined(await profiler.take("heap", 0.01));
  });
});
