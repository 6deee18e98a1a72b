import type { Clock } from "../../base/clock.ts";
import type { EntryChange } from "./directory-watch.ts";

/** Which paths need a look, now or later. Marks are a set: a burst on one path is one entry, so the queue is bounded by the tree. */
export class ChangeQueue {
  readonly #clock: Clock;
  readonly #now = new Map<string, EntryChange>();
  readonly #later = new Map<string, number>();
  #lastMark = 0;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something happened to `path` (below the root; "" is the root itself: everything). */
  mark(path: string, change: EntryChange = "any"): void {
    if (this.#now.get(path) !== "any") this.#now.set(path, change);
    this.#lastMark = this.#clock.monotonic();
    this.#wake?.();
  }

  /** Look at `path` again in `ms`, unless something happens to it before. */
  markLater(path: string, ms: number): void {
    this.#later.set(path, this.#clock.monotonic() + ms);
  }

  /** What happened to `path` since it was taken last, if anything did. */
  marked(path: string): EntryChange | undefined {
    return this.#now.get(path);
  }

  /** Takes all that is due. */
  take(): Map<string, EntryChange> {
    const now = this.#clock.monotonic();
    const taken = new Map(this.#now);
    this.#now.clear();
    for (const [path, due] of this.#later) if (due <= now) taken.set(path, "any");
    for (const path of taken.keys()) this.#later.delete(path);
    return taken;
  }

  /** Waits until something is due, at most `ms`, or until the signal aborts. */
  async next(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#now.size > 0) return;
    const now = this.#clock.monotonic();
    let due = now + ms;
    for (const one of this.#later.values()) if (one < due) due = one;
    if (due > now) await this.#pause(due - now, signal);
  }

  /** Waits until nothing was marked for `quiet` ms, at most `maxWait` ms. */
  async settled(times: { readonly quiet: number; readonly maxWait: number }, signal: AbortSignal): Promise<void> {
    const deadline = this.#clock.monotonic() + times.maxWait;
    while (!signal.aborted) {
      const now = this.#clock.monotonic();
      const wait = Math.min(this.#lastMark + times.quiet, deadline) - now;
      if (wait <= 0) return;
      await this.#clock.sleep(wait, signal).catch(() => undefined);
    }
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const done = (): void => {
        cancel();
        signal.removeEventListener("abort", done);
        this.#wake = undefined;
        resolve();
      };
      const cancel = this.#clock.after(ms, done);
      signal.addEventListener("abort", done, { once: true });
      this.#wake = done;
    });
  }
}
