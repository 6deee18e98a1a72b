import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { type Sample, soak, soakDoubts, soakFaults } from "../../bench/soak.ts";
import { slope, trend } from "../../bench/trend.ts";

const SECONDS = 12;
const ROUNDS = 6;
const SHAPE = { services: 60, endpoints: 3, virtualServices: 10, destinationRules: 10, namespaces: 5, proxies: 20, classes: 5 };
/** Results of the last change that the next sweep will forget. */
const UNSWEPT = 100;
/** What the live heap may differ by from one round to another: code that is compiled meanwhile, and responses that deaf proxies are due. */
const HEAP_MB = 3;
/** What a round may leave behind on average. Code goes on being compiled in the first minutes, so it is not nothing. */
const HEAP_MB_A_ROUND = 0.25;

const range = (values: readonly number[]): number => Math.max(...values) - Math.min(...values);

describe("churn", () => {
  it(
    "leaves nothing behind: no handle, no query, no recorded read, nothing in the heap, and no proxy that does not read",
    async () => {
      const samples = await soak({ shape: SHAPE, seconds: SECONDS, leastRounds: ROUNDS, collects: true, emit: () => {} });
      const level = samples.slice(Math.floor(samples.length / 3));
      assert.ok(level.length >= 3, `only ${samples.length} rounds`);
      const of = (pick: (sample: Sample) => number): readonly number[] => level.map(pick);
      assert.ok(range(of(({ handles }) => handles)) <= 10, `handles: ${of(({ handles }) => handles)}`);
      assert.ok(range(of(({ nodes }) => nodes)) <= UNSWEPT, `results: ${of(({ nodes }) => nodes)}`);
      assert.ok(range(of(({ edges }) => edges)) <= UNSWEPT * 10, `reads: ${of(({ edges }) => edges)}`);
      const heap = of(({ heapMb }) => heapMb);
      assert.ok(range(heap) <= HEAP_MB, `live heap: ${heap}`);
      const growth = slope(heap.map((mb, round) => [round, mb]));
      assert.ok(growth <= HEAP_MB_A_ROUND, `live heap: ${heap}, ${growth} MB a round`);
      const cut = samples.at(-1)?.cut ?? Number.NaN;
      assert.ok(cut >= ROUNDS, `only ${cut} of those that do not read were cut`);
      assert.deepEqual(soakFaults(samples), []);
    },
    (SECONDS + 300) * 1000,
  );

  it("is judged by its slope, unless that may be chance", () => {
    const sampled = (handles: (round: number) => number): readonly Sample[] =>
      Array.from({ length: 100 }, (_, round) => ({
        seconds: round * 18,
        rssMb: 100,
        heapMb: 50,
        handles: handles(round),
        nodes: 5,
        edges: 5,
        cut: 0,
      }));
    assert.deepEqual(soakFaults(sampled((round) => 50 + (round % 7))), [], "up and down");
    assert.match(soakFaults(sampled((round) => 50 + round))[0] ?? "", /^soak-handles: grows by 200 /);
    const warming = sampled(() => 50).map((sample) => ({ ...sample, rssMb: 100 + sample.seconds }));
    assert.deepEqual(soakDoubts(warming.slice(0, 20)), ["soak"], "code is still being compiled");
    assert.match(soakFaults(warming)[0] ?? "", /^soak: grows/);
    const unmeasured = sampled(() => 50).map((sample) => ({ ...sample, heapMb: Number.NaN }));
    assert.deepEqual(soakFaults(unmeasured), ["soak-heap: was not measured"]);
    assert.deepEqual(
      trend([
        [0, 0],
        [1, 2],
        [2, 1],
        [3, 3],
      ]),
      { slope: 0.8, error: Math.sqrt(1.8 / 2 / 5) },
    );
  });

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
