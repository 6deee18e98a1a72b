import { hash } from "node:crypto";

/** Two numbers of 48 bits that stand for a text in sums: a set of a thousand costs a thousand additions, not sorting. */
export interface Mark {
  readonly high: number;
  readonly low: number;
}

const MARK_BYTES = 6;
const MARK_LIMIT = 2 ** (8 * MARK_BYTES);

/** Equal texts have equal marks; different ones differ as surely as their hashes do. */
export function markOf(text: string): Mark {
  const digest = hash("sha256", text, "buffer");
  return { high: digest.readUIntBE(0, MARK_BYTES), low: digest.readUIntBE(MARK_BYTES, MARK_BYTES) };
}

/** The rest of a sum of two, without the division that `%` is for numbers of this size. */
const wrapped = (sum: number): number => (sum < MARK_LIMIT ? sum : sum - MARK_LIMIT);

/** Stands for a set of texts, in whatever order they are added. */
export class MarkSum {
  #high = 0;
  #low = 0;

  add({ high, low }: Mark): void {
    this.#high = wrapped(this.#high + high);
    this.#low = wrapped(this.#low + low);
  }

  /** Stands for the set in sums of sets. */
  get mark(): Mark {
    return { high: this.#high, low: this.#low };
  }

  get text(): string {
    return `${this.#high.toString(36)}${this.#low.toString(36).padStart(10, "0")}`;
  }
}

/** The sum of a set. */
export function sumOf(marks: Iterable<Mark>): MarkSum {
  const sum = new MarkSum();
  for (const mark of marks) sum.add(mark);
  return sum;
}
