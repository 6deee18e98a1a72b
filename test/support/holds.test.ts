import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds, parametersOf } from "./holds.ts";

const below = (limit: number) => (value: number) => void expect(value).toBeLessThan(limit);

describe("a property that does not hold", () => {
  it("says (how) it can be repeated, and is when asked so", () => {
    const failing = fc.property(fc.nat(), below(1_000));
    const message = messageOf(() => holds(failing));
    const [, seed = "", path = ""] =
      /FC_SEED=(-?\d+) FC_PATH=([\d:]+) npx vitest run test\/support\/holds\.test\.ts -t 'a property that .* \\\(how\\\) /.exec(message) ??
      [];
    expect(message).toContain("Counterexample: [1000]");
    const again = fc.check(failing, { ...parametersOf({ FC_SEED: seed, FC_PATH: path }) });
    expect([again.counterexample, again.numRuns]).toEqual([[1_000], 1]);
  });

  it("does so if it takes time, too", async () => {
    const failing = fc.asyncProperty(fc.nat(), async (value) => below(1_000)(value));
    await expect(holds(failing)).rejects.toThrow(/Counterexample: \[1000\][\s\S]*FC_SEED=.*holds\.test\.ts -t 'a property/);
  });

  it("fails at a known case first", () => {
    const drawn: number[] = [];
    const failing = fc.property(fc.constant(0), (value) => void expect(drawn.push(value) && value).toBe(0));
    expect(messageOf(() => holds(failing, { examples: [[7]] }))).toContain("Counterexample: [7]");
    expect(drawn).toEqual([7]);
  });
});

it("the environment says how many times properties are tried, and nothing where it is silent", () => {
  expect(parametersOf({ FC_RUNS: "5", FC_SEED: "-3" })).toEqual({ numRuns: 5, seed: -3, markInterruptAsFailure: false });
  expect(parametersOf({ FC_SEED: "", HOME: "/" })).toEqual({});
});

it("all properties are run in this one way", () => {
  const files = ["src", "test", "tools"].flatMap((dir) =>
    readdirSync(dir, { recursive: true, encoding: "utf8" }).map((file) => join(dir, file)),
  );
  const tests = files.filter((file) => file.endsWith(".ts") && !file.startsWith("src/gen/") && file !== "test/support/holds.test.ts");
  expect(tests.filter((file) => /\bfc\.assert\(/.test(readFileSync(file, "utf8")))).toEqual([]);
});

function messageOf(run: () => void): string {
  try {
    run();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return expect.fail("it holds");
}
