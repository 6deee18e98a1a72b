import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { PushQueue, type Served, type TurnLane } from "./push-queue.ts";

/** How many steps there are, and what happens in each. */
interface Work {
  readonly steps?: number;
  readonly during?: (step: number) => void;
}

/** A queue whose steps take a millisecond each, and what was done in it, in order. */
function setUp() {
  const done: string[] = [];
  const faults: string[] = [];
  let now = 0;
  const queue = new PushQueue<Served & { readonly name: string }>({
    clock: { monotonic: () => now },
    failed: ({ name }, error) => faults.push(`${name}: ${String(error)}`),
  });
  const add = (name: string, lane: TurnLane, { steps = 1, during = () => {} }: Work = {}): Served & { readonly name: string } => {
    const stream = {
      name,
      *work(urgentOnly: boolean): Iterable<void> {
        for (let step = 1; step <= steps; step += 1) {
          now += 1;
          done.push(urgentOnly ? `${name}!` : name);
          during(step);
          yield;
        }
      },
    };
    queue.add(stream, lane);
    return stream;
  };
  const run = (): void => {
    for (const _ of queue.steps());
  };
  return { queue, done, faults, add, run };
}

/** Runs of the same name, with their lengths. */
function runs(done: readonly string[]): string {
  const parts: [name: string, count: number][] = [];
  for (const name of done) {
    const last = parts.at(-1);
    if (last?.[0] === name) last[1] += 1;
    else parts.push([name, 1]);
  }
  return parts.map(([name, count]) => `${name}${count}`).join(" ");
}

describe("the push queue", () => {
  it("serves urgent types first, also between the steps of a turn that has begun", () => {
    const { done, add, run } = setUp();
    add("big", "known", {
      steps: 5,
      during: (step) => {
        if (step === 2) add("endpoint", "urgent");
      },
    });
    add("small", "known");
    add("first endpoint", "urgent");
    run();
    assert.deepEqual(done, ["first endpoint!", "big", "big", "endpoint!", "big", "big", "big", "small"]);
  });

  it("puts long turns aside, so that short ones do not wait for them, nor they for short ones", () => {
    const { done, add, run } = setUp();
    add("big", "known", { steps: 60 });
    for (const name of ["a", "b", "c"]) add(name, "known");
    run();
    assert.equal(runs(done), "big20 a1 big20 b1 big20 c1");
  });

  it("lets long turns share the time", () => {
    const { done, add, run } = setUp();
    for (const name of ["x", "y"]) add(name, "known", { steps: 60 });
    run();
    assert.equal(runs(done), "x20 y20 x20 y20 x20 y20");
  });

  it("begins no more than it can keep", () => {
    const { done, add, run } = setUp();
    for (let index = 0; index < 30; index += 1) add(`long-${String(index).padStart(2, "0")}`, "known", { steps: 60 });
    run();
    const open = new Map<string, number>();
    let most = 0;
    for (const name of done) {
      const steps = (open.get(name) ?? 0) + 1;
      if (steps === 60) open.delete(name);
      else open.set(name, steps);
      most = Math.max(most, open.size);
    }
    assert.equal(done.length, 30 * 60);
    assert.ok(most <= 4, `${most} turns were begun`);
  });

  it("does not let those who are served wait for a crowd that comes, nor the crowd for ever", () => {
    const { done, add, run } = setUp();
    for (let index = 0; index < 100; index += 1) add("new", "first");
    for (let index = 0; index < 8; index += 1) add("known", "known");
    run();
    assert.equal(runs(done), "known3 new1 known3 new1 known2 new98");
  });

  it("serves those that have begun before those that come", () => {
    const { done, add, run } = setUp();
    for (let index = 0; index < 3; index += 1) add("new", "first");
    add("begun", "joining");
    run();
    assert.equal(runs(done), "begun1 new3");
  });

  it("takes one step for a turn that is over at once, whether it went well or not", () => {
    const { queue, faults } = setUp();
    const done: string[] = [];
    const atOnce = (name: string, work: () => void = () => {}) => ({
      name,
      work(): undefined {
        done.push(name);
        work();
      },
    });
    const fail = (): void => {
      throw new Error("boom");
    };
    for (const stream of [atOnce("one"), atOnce("bad", fail), atOnce("two")]) queue.add(stream, "known");
    queue.add(atOnce("endpoint"), "urgent");
    assert.equal([...queue.steps()].length, 4);
    assert.deepEqual([done, faults], [["endpoint", "one", "bad", "two"], ["bad: Error: boom"]]);
  });

  it("goes on when one fails, and forgets those who leave", () => {
    const { queue, done, faults, add, run } = setUp();
    add("bad", "known", {
      during: () => {
        throw new Error("boom");
      },
    });
    const gone = add("gone", "known");
    const long = add("long", "known", { steps: 60 });
    add("leaver", "known", { during: () => queue.delete(long) });
    queue.delete(gone);
    run();
    assert.deepEqual(faults, ["bad: Error: boom"]);
    assert.equal(runs(done), "bad1 long20 leaver1");
    assert.ok(queue.empty);
  });
});
