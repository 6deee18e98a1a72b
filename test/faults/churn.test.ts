import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { type Sample, slope, soak } from "../../bench/soak.ts";

const SECONDS = 12;
const SHAPE = { services: 60, endpoints: 3, virtualServices: 10, destinationRules: 10, namespaces: 5, proxies: 20, classes: 5 };
/** Results of the last change that the next sweep will forget. */
const UNSWEPT = 100;

const range = (values: readonly number[]): number => Math.max(...values) - Math.min(...values);

describe("churn", () => {
  it(
    "leaves nothing behind: no handle, no query, no recorded read",
    async () => {
      const samples = await soak({ shape: SHAPE, seconds: SECONDS, emit: () => {} });
      const level = samples.slice(Math.floor(samples.length / 3));
      assert.ok(level.length >= 3, `only ${samples.length} rounds`);
      const of = (pick: (sample: Sample) => number): readonly number[] => level.map(pick);
      assert.ok(range(of(({ handles }) => handles)) <= 10, `handles: ${of(({ handles }) => handles)}`);
      assert.ok(range(of(({ nodes }) => nodes)) <= UNSWEPT, `results: ${of(({ nodes }) => nodes)}`);
      assert.ok(range(of(({ edges }) => edges)) <= UNSWEPT * 10, `reads: ${of(({ edges }) => edges)}`);
    },
    (SECONDS + 60) * 1000,
  );

  it("is judged by least squares", () => {
    assert.equal(
      slope([
        [0, 1],
        [1, 3],
        [2, 5],
      ]),
      2,
    );
    assert.equal(slope([]), 0);
  });
});
