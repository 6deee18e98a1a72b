import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { knownLater } from "./known-later.ts";

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

/** Something that is found when the test says so, attempt by attempt. */
function sought(patienceMs: number | undefined) {
  const clock = manualClock();
  const attempts: PromiseWithResolvers<string>[] = [];
  const failures: string[] = [];
  const result = knownLater({
    find() {
      const attempt = Promise.withResolvers<string>();
      attempts.push(attempt);
      return attempt.promise;
    },
    patienceMs,
    clock,
    failed: (reason) => failures.push(reason),
  });
  return { clock, attempts, failures, result };
}

describe("what may be known later", () => {
  it("is there where it was found in time", async () => {
    const { attempts, result } = sought(1_000);
    attempts[0]?.resolve("it");
    expect((await result).current).toBe("it");
  });

  it("fails the start where it cannot be found", async () => {
    for (const patienceMs of [1_000, undefined]) {
      const { attempts, result } = sought(patienceMs);
      attempts[0]?.reject(new Error("broken"));
      await expect(result).rejects.toThrow("broken");
    }
  });

  it("is waited for without an end where there is no patience to lose", async () => {
    const { clock, attempts, result } = sought(undefined);
    clock.advance(1_000_000);
    attempts[0]?.resolve("it");
    expect((await result).current).toBe("it");
  });

  it("is looked for again and again after the start, and told once", async () => {
    const { clock, attempts, failures, result } = sought(1_000);
    await turns();
    clock.advance(1_000);
    const later = await result;
    const told: string[] = [];
    later.whenKnown((value) => told.push(value));
    expect(later.current).toBeUndefined();
    attempts[0]?.reject(new Error("not yet"));
    await turns();
    expect([later.fault, failures]).toEqual(["not yet", ["not yet"]]);
    clock.advance(5_000);
    await turns();
    attempts[1]?.resolve("it");
    await turns();
    expect([later.current, later.fault, told]).toEqual(["it", undefined, ["it"]]);
    later.whenKnown((value) => told.push(value));
    expect(told).toEqual(["it", "it"]);
  });

  it("is no longer looked for after an end", async () => {
    const { clock, attempts, result } = sought(1_000);
    await turns();
    clock.advance(1_000);
    const later = await result;
    later.stop();
    attempts[0]?.resolve("it");
    await turns();
    expect(later.current).toBeUndefined();
  });
});
