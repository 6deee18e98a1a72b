/** How long to wait, and where chance comes from. */
export interface BackOffOptions {
  readonly firstMs: number;
  readonly mostMs: number;
  /** From 0 to 1; `Math.random` where nothing is said. */
  readonly random?: () => number;
}

/** Waits that double from one failure to the next, each at random between half and the whole: many who lost the same server do not come back at once. */
export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** How long to wait after one more failure. */
  next(): number {
    const { firstMs, mostMs, random = Math.random } = this.#options;
    const wait = Math.min(firstMs * 2 ** this.#failures, mostMs);
    if (wait < mostMs) this.#failures += 1;
    return wait / 2 + (random() * wait) / 2;
  }

  /** Something has worked: the next wait is the first again. */
  reset(): void {
    this.#failures = 0;
  }
}
