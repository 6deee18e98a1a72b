import { addNumbers, type Family, type Numbers, type Shape } from "./series.ts";

/** A series of Envoy's as it was on the last page, and the labels it was shown under. */
interface Entry {
  readonly labels: string;
  readonly numbers: Numbers;
}

interface Account {
  readonly shape: Shape;
  /** By the labels Envoy counts by. */
  entries: ReadonlyMap<string, Entry>;
  /** What is to be added to what Envoy says, by the labels that are shown. */
  readonly carried: Map<string, Numbers>;
}

/** Series that are carried on after Envoy has dropped them, of one metric. Those beyond are summed up in one. */
export const MOST_CARRIED = 5_000;

/**
 * Counts on where Envoy does not: it drops series that are not in use, starts from nothing after a restart, and what stands behind an address changes.
 * What it had counted until then stays with the labels it was shown under, so that no number on a page ever becomes smaller.
 */
export class Ledger {
  readonly #accounts = new Map<string, Account>();
  #carriedBeyond = 0;
  #pages = 0;

  /** Pages taken so far. */
  get pages(): number {
    return this.#pages;
  }

  /** Series that were summed up because there were too many. */
  get carriedBeyond(): number {
    return this.#carriedBeyond;
  }

  /** Takes a whole page of Envoy's to the books. `shown` gives the labels a series is shown under, `rest` those of what is beyond the limit. */
  enter(families: ReadonlyMap<string, Family>, shown: (family: Family, labels: string) => string, rest: (labels: string) => string): void {
    this.#pages += 1;
    for (const [name, { shape }] of families)
      if (!this.#accounts.has(name)) this.#accounts.set(name, { shape, entries: new Map(), carried: new Map() });
    for (const [name, account] of this.#accounts) {
      const family = families.get(name) ?? { shape: account.shape, series: new Map() };
      const entries = new Map<string, Entry>();
      for (const [labels, numbers] of family.series) entries.set(labels, { labels: shown(family, labels), numbers });
      for (const [labels, before] of account.entries) {
        const now = entries.get(labels);
        const gone = now === undefined || isReset(account.shape, before.numbers, now.numbers);
        if (gone || now.labels !== before.labels) this.#carry(account, before, rest);
        if (!gone && now.labels !== before.labels) addNumbers(account.carried, now.labels, { numbers: before.numbers, sign: -1 });
      }
      account.entries = entries;
    }
  }

  /** Every metric that there is or was, by the labels that are shown. */
  *sums(): Iterable<{ readonly shape: Shape; readonly series: ReadonlyMap<string, Numbers> }> {
    for (const { shape, entries, carried } of this.#accounts.values()) {
      const series = new Map<string, Numbers>();
      for (const { labels, numbers } of entries.values()) addNumbers(series, labels, { numbers });
      for (const [labels, numbers] of carried) addNumbers(series, labels, { numbers });
      if (series.size > 0) yield { shape, series };
    }
  }

  #carry({ carried }: Account, { labels, numbers }: Entry, rest: (labels: string) => string): void {
    const full = carried.size >= MOST_CARRIED && !carried.has(labels);
    if (full) this.#carriedBeyond += 1;
    addNumbers(carried, full ? rest(labels) : labels, { numbers });
  }
}

/** A count that became smaller started from nothing again. Sums of histograms are estimates, and not asked. */
const isReset = ({ columns }: Shape, before: Numbers, now: Numbers): boolean =>
  before.some((value, index) => columns[index]?.suffix !== "_sum" && (now[index] ?? 0) < value);
