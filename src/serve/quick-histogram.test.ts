import { Histogram, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { QuickHistogram } from "./quick-histogram.ts";

describe("a quick histogram", () => {
  const options = (registry: Registry) => ({
    ...{ registers: [registry], name: "sizes", help: "How large.", buckets: [1, 10, 100] },
    labelNames: ["type" as const],
  });

  it("says what prom-client's own would", async () => {
    const [quick, plain] = [new Registry(), new Registry()];
    const mine = new QuickHistogram(options(quick));
    const theirs = new Histogram(options(plain));
    for (const [type, value] of [
      ["cds", 0.5],
      ["eds", 1],
      ["cds", 10],
      ["cds", 10.5],
      ["eds", 1e6],
    ] as const) {
      mine.add(value, type);
      theirs.observe({ type }, value);
    }
    expect((await quick.metrics()).split("\n").sort()).toEqual((await plain.metrics()).split("\n").sort());
    expect([...mine.totals()]).toEqual([
      ["cds", 3],
      ["eds", 2],
    ]);
  });
});
