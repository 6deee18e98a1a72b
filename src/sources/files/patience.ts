import type { Clock } from "../../base/clock.ts";

/** Believes an unlikely sight (a file gone, a file emptied) only when it has lasted. */
export class Patience {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #seen = new Map<string, { readonly sight: string; readonly since: number }>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Milliseconds for which `sight` must still be seen at `path`; 0 when it has been seen for `ms`. */
  left(path: string, sight: string, ms: number): number {
    const now = this.#clock.monotonic();
    const before = this.#seen.get(path);
    if (before?.sight !== sight) {
      this.#seen.set(path, { sight, since: now });
      return ms;
    }
    const left = before.since + ms - now;
    if (left > 0) return left;
    this.#seen.delete(path);
    return 0;
  }

  /** Nothing unlikely is to be seen at `path`. */
  forget(path: string): void {
    this.#seen.delete(path);
  }
}
