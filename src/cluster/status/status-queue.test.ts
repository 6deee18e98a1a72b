import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { nextTurn } from "../../base/slice.ts";
import { StatusQueue, type StatusQueueOptions, type WorkResult } from "./status-queue.ts";

/** A queue that runs, and what it did when, in ms. */
function begin(answer: (key: string) => WorkResult | Promise<WorkResult>, options: Partial<StatusQueueOptions> = {}) {
  const hands = manualClock();
  const done: [key: string, at: number][] = [];
  const waiting: number[] = [];
  const clock: StatusQueueOptions["clock"] = {
    ...hands,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        hands.after(ms, resolve);
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
  };
  const work: StatusQueueOptions["work"] = async (key) => {
    done.push([key, hands.monotonic()]);
    return answer(key);
  };
  const queue = new StatusQueue({
    clock,
    perSecond: 10,
    burst: 2,
    workers: 10,
    random: () => 1,
    waiting: (count) => waiting.push(count),
    work,
    ...options,
  });
  const abort = new AbortController();
  void queue.run(abort.signal);
  onTestFinished(() => abort.abort());
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 50) {
      await settle();
      hands.advance(50);
    }
    await settle();
  };
  return { queue, done, waiting, pass };
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await nextTurn();
};

describe("the queue of statuses", () => {
  it("does a burst at once and the rest at its rate, each key once however often it is asked for", async () => {
    const { queue, done, waiting, pass } = begin(() => "done");
    for (const key of ["K/a", "K/b", "K/a", "K/c", "K/d", "K/c"]) queue.add(key);
    await pass(1_000);
    expect(done).toEqual([
      ["K/a", 0],
      ["K/b", 0],
      ["K/c", 100],
      ["K/d", 200],
    ]);
    expect(waiting.at(-1)).toBe(0);
  });

  it("tries again what failed, later each time, and keeps none of the others waiting", async () => {
    const { queue, done, pass } = begin((key) => (key === "K/bad" && done.length < 4 ? { putOff: "key" } : "done"));
    queue.add("K/bad");
    queue.add("K/good");
    await pass(5_000);
    expect(done).toEqual([
      ["K/bad", 0],
      ["K/good", 0],
      ["K/bad", 500],
      ["K/bad", 1_500],
    ]);
  });

  it("puts off a whole kind that may not be written, and does others meanwhile", async () => {
    const { queue, done, pass } = begin((key) => (key.startsWith("Secretive/") ? { putOff: "kind" } : "done"), { burst: 100 });
    for (let index = 0; index < 50; index++) queue.add(`Secretive/${index}`);
    queue.add("Open/a");
    await pass(10_000);
    expect(done.filter(([key]) => key.startsWith("Secretive/")).length).toBeLessThanOrEqual(10);
    expect(done.map(([key]) => key)).toContain("Open/a");
    await pass(10_000);
    expect(done.filter(([key, at]) => key.startsWith("Secretive/") && at > 10_000).length).toBeGreaterThan(0);
  });

  it("waits as long as the server asks for, with everything", async () => {
    const { queue, done, pass } = begin(() => (done.length === 1 ? { putOff: "all", afterMs: 7_000 } : "done"), { workers: 1 });
    queue.add("K/a");
    queue.add("L/b");
    await pass(6_900);
    expect(done).toEqual([["K/a", 0]]);
    await pass(500);
    expect(done.map(([key]) => key).sort()).toEqual(["K/a", "K/a", "L/b"]);
  });

  it("does what is asked for again while it is being done once more, and forgets what need not be done", async () => {
    const answers: ((result: WorkResult) => void)[] = [];
    const { queue, done, pass } = begin(() => new Promise((resolve) => answers.push(resolve)), { burst: 10 });
    queue.add("K/a");
    await pass(50);
    queue.add("K/a");
    queue.add("K/gone");
    queue.delete("K/gone");
    await pass(50);
    expect(done.length).toBe(1);
    answers[0]?.("done");
    await pass(50);
    expect(done.map(([key]) => key)).toEqual(["K/a", "K/a"]);
  });
});
