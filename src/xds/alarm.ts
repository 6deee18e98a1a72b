import type { Clock } from "../base/clock.ts";

/** Rings once, when the first of the waits it was set for is over. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #cancel: (() => void) | undefined;
  #at: number | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  after(ms: number): void {
    const at = this.#clock.monotonic() + ms;
    if (this.#at !== undefined && this.#at <= at) return;
    this.#cancel?.();
    this.#at = at;
    this.#cancel = this.#clock.after(ms, () => {
      this.#at = undefined;
      this.#ring();
    });
  }

  stop(): void {
    this.#cancel?.();
  }
}
