import { Histogram, type HistogramConfiguration } from "prom-client";

type Label = "type";

interface Tally {
  /** How many fell into each bucket, and above the last: not added up. */
  readonly counts: Float64Array;
  sum: number;
}

/**
 * A histogram for what happens at every response to every proxy: an observation is a look-up and two additions. prom-client's own takes its labels
 * apart each time.
 */
export class QuickHistogram extends Histogram<Label> {
  readonly #name: string;
  /** What it is called and is, for prom-client. */
  readonly #empty: Histogram<Label>;
  readonly #buckets: readonly number[];
  readonly #tallies = new Map<string, Tally>();

  constructor(options: HistogramConfiguration<Label> & { readonly buckets: number[] }) {
    super(options);
    this.#name = options.name;
    this.#empty = new Histogram({ ...options, registers: [] });
    this.#buckets = options.buckets;
  }

  /** Adds an observation. Where nothing is told apart, `type` is left out. */
  add(value: number, type = ""): void {
    let tally = this.#tallies.get(type);
    if (tally === undefined) {
      tally = { counts: new Float64Array(this.#buckets.length + 1), sum: 0 };
      this.#tallies.set(type, tally);
    }
    let bucket = 0;
    while (bucket < this.#buckets.length && value > (this.#buckets[bucket] ?? 0)) bucket += 1;
    tally.counts[bucket] = (tally.counts[bucket] ?? 0) + 1;
    tally.sum += value;
  }

  /** Observations so far, by type. */
  *totals(): Iterable<readonly [type: string, count: number]> {
    for (const [type, { counts }] of this.#tallies) yield [type, counts.reduce((sum, count) => sum + count, 0)];
  }

  override get(): ReturnType<Histogram<Label>["get"]> {
    return this.getForPromString();
  }

  /** What prom-client asks for to write it out. */
  async getForPromString(): ReturnType<Histogram<Label>["get"]> {
    const values = [...this.#tallies].flatMap(([type, tally]) => this.#lines(type === "" ? {} : { type }, tally));
    return { ...(await this.#empty.get()), values };
  }

  #lines(labels: Readonly<Partial<Record<Label, string>>>, { counts, sum }: Tally) {
    let total = 0;
    const buckets = [...this.#buckets, "+Inf"].map((le, index) => {
      total += counts[index] ?? 0;
      return { metricName: `${this.#name}_bucket`, labels: { le, ...labels }, value: total };
    });
    return [
      ...buckets,
      { metricName: `${this.#name}_sum`, labels, value: sum },
      { metricName: `${this.#name}_count`, labels, value: total },
    ];
  }
}
