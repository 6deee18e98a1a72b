import type { AgentMetric } from "./agent-metrics.ts";

/** Counts values by size, as Prometheus has it: each bucket holds all that are at most as large as its bound. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #count = 0;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#count += 1;
    this.#sum += value;
    for (const [index, bound] of this.#bounds.entries()) if (value <= bound) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  /** It under a name, as a metric of the agent. */
  metric(name: string): AgentMetric {
    return {
      name,
      type: "histogram",
      values: () => [
        ...this.#bounds.map((bound, index) => ({ of: "_bucket" as const, labels: { le: String(bound) }, value: this.#counts[index] ?? 0 })),
        { of: "_bucket", labels: { le: "+Inf" }, value: this.#count },
        { of: "_sum", value: this.#sum },
        { of: "_count", value: this.#count },
      ],
    };
  }
}
