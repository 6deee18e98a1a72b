import { BackOff } from "../../base/back-off.ts";
import type { Clock } from "../../base/clock.ts";

/** What came of one piece of work: done, or put off together with everything of its scope (its key, its kind, or all). */
export type WorkResult = "done" | { readonly putOff: "key" | "kind" | "all"; readonly afterMs?: number };

export interface StatusQueueOptions {
  readonly clock: Clock;
  readonly perSecond: number;
  readonly burst: number;
  readonly workers: number;
  /** Keys are `Kind/…`. Must not throw. */
  readonly work: (key: string, signal: AbortSignal) => Promise<WorkResult>;
  /** Told how many wait. */
  readonly waiting: (count: number) => void;
  readonly random?: () => number;
}

const BACK_OFF = {
  key: { firstMs: 500, mostMs: 60_000 },
  kind: { firstMs: 15_000, mostMs: 600_000 },
  all: { firstMs: 1_000, mostMs: 60_000 },
} as const;

interface Pause {
  readonly backOff: BackOff;
  until: number;
}

/**
 * Work by key, each once however often it is asked for, at a bounded rate: a bucket of tokens that fills at `perSecond`. What fails is tried again later
 * and less often; what would fail for many is put off for all of them at once.
 */
export class StatusQueue {
  readonly #options: StatusQueueOptions;
  readonly #waiting = new Set<string>();
  readonly #busy = new Set<string>();
  readonly #pauses = new Map<string, Pause>();
  #tokens: number;
  #filledAt: number;
  #wake: () => void = () => {};

  constructor(options: StatusQueueOptions) {
    this.#options = options;
    this.#tokens = options.burst;
    this.#filledAt = options.clock.monotonic();
  }

  add(key: string): void {
    this.#waiting.add(key);
    this.#told();
    this.#wake();
  }

  /** It need not be done any more, and what was wrong with it is forgotten. */
  delete(key: string): void {
    this.#pauses.delete(key);
    if (this.#waiting.delete(key)) this.#told();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const wait = this.#step(signal);
      if (wait === 0) continue;
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await clock.sleep(Math.min(wait, LONGEST_WAIT_MS), AbortSignal.any([signal, woken.signal])).catch(() => undefined);
      this.#wake = () => {};
    }
  }

  /** Begins with one that may be done; else says how long nothing can. */
  #step(signal: AbortSignal): number {
    const { clock, perSecond, workers } = this.#options;
    if (this.#waiting.size === 0 || this.#busy.size >= workers) return LONGEST_WAIT_MS;
    this.#fill();
    if (this.#tokens < 1) return Math.ceil(((1 - this.#tokens) * 1_000) / perSecond);
    const now = clock.monotonic();
    let soonest = LONGEST_WAIT_MS;
    for (const key of this.#waiting) {
      if (this.#busy.has(key)) continue;
      const wait = Math.max(...scopesOf(key).map((scope) => (this.#pauses.get(scope)?.until ?? 0) - now));
      if (wait <= 0) {
        this.#tokens -= 1;
        this.#waiting.delete(key);
        this.#busy.add(key);
        this.#told();
        void this.#do(key, signal);
        return 0;
      }
      soonest = Math.min(soonest, wait);
    }
    return Math.ceil(soonest);
  }

  async #do(key: string, signal: AbortSignal): Promise<void> {
    const result = await this.#options.work(key, signal);
    this.#busy.delete(key);
    if (result === "done") for (const scope of scopesOf(key)) this.#pauses.delete(scope);
    else if (!signal.aborted) {
      this.#putOff(result.putOff === "key" ? key : result.putOff === "kind" ? kindOf(key) : ALL, result);
      this.#waiting.add(key);
      this.#told();
    }
    this.#wake();
  }

  #putOff(scope: string, { putOff, afterMs = 0 }: Exclude<WorkResult, "done">): void {
    const now = this.#options.clock.monotonic();
    const known = this.#pauses.get(scope);
    if (known !== undefined && known.until > now) return; // Others that were under way failed with the first.
    const backOff = known?.backOff ?? new BackOff({ ...BACK_OFF[putOff], random: this.#options.random ?? Math.random });
    this.#pauses.set(scope, { backOff, until: now + Math.max(backOff.next(), afterMs) });
  }

  #fill(): void {
    const { clock, perSecond, burst } = this.#options;
    const now = clock.monotonic();
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#filledAt) * perSecond) / 1_000);
    this.#filledAt = now;
  }

  #told(): void {
    this.#options.waiting(this.#waiting.size);
  }
}

const LONGEST_WAIT_MS = 60_000;
const ALL = "*";
const kindOf = (key: string): string => key.slice(0, key.indexOf("/"));
const scopesOf = (key: string): readonly string[] => [key, kindOf(key), ALL];
