import type { Clock } from "../base/clock.ts";

export interface DebounceSettings {
  /** Quiet time that ends a batch (Istio's PILOT_DEBOUNCE_AFTER). */
  readonly afterMs: number;
  /** The longest a change waits, whatever pushes take (PILOT_DEBOUNCE_MAX). */
  readonly maxMs: number;
}

export interface Debounce {
  /** Notes a change. */
  note(): void;
  /** Passes on what is waiting, now. */
  flush(): void;
  /** Drops what is waiting. */
  stop(): void;
}

/** A change that finds no quiet waits for so many quiet times … */
const QUIET_TIMES = 5;
/** … or for so many times what the last push took, if that is longer: while changes go on, most of the time is left for all else. */
const PUSH_TIMES = 3;

/**
 * Turns a stream of changes into batches: the first change after a quiet time is passed on at once, so that a single edit takes effect without
 * delay; those that follow closely are gathered until it is quiet again. Where it is never quiet they do not wait for that: how long depends on what `pass` takes, until
 * the promise it gives resolves, so that a control plane for which pushes are little work is not behind by the maximum, and one that has much to do gathers more.
 */
export function createDebounce(settings: DebounceSettings, clock: Clock, pass: () => Promise<void>): Debounce {
  let waiting = false;
  let firstAt = 0;
  let lastAt = 0;
  let lastPushMs = 0;
  let pushingSince: number | undefined;
  let cancel: (() => void) | undefined;

  /** What the last push took, or has taken so far. */
  const pushMs = (): number => Math.max(lastPushMs, pushingSince === undefined ? 0 : clock.monotonic() - pushingSince);
  const longest = (): number => Math.min(settings.maxMs, Math.max(QUIET_TIMES * settings.afterMs, PUSH_TIMES * pushMs()));
  /** How long until what waits is passed on, or until it has been quiet. */
  const left = (): number =>
    (waiting ? Math.min(lastAt + settings.afterMs, firstAt + longest()) : lastAt + settings.afterMs) - clock.monotonic();
  const wait = (): void => {
    cancel?.();
    cancel = clock.after(Math.max(0, left()), expire);
  };
  const expire = (): void => {
    cancel = undefined;
    if (left() > 0) wait();
    else if (waiting) flush();
  };
  const flush = (): void => {
    const passes = waiting;
    waiting = false;
    lastAt = clock.monotonic();
    wait();
    if (passes) void push();
  };
  const push = async (): Promise<void> => {
    const startedAt = clock.monotonic();
    pushingSince ??= startedAt;
    await pass();
    lastPushMs = clock.monotonic() - startedAt;
    pushingSince = undefined;
  };
  return {
    note() {
      lastAt = clock.monotonic();
      if (!waiting) firstAt = lastAt;
      waiting = true;
      if (cancel === undefined) flush();
      else wait();
    },
    flush,
    stop() {
      cancel?.();
      cancel = undefined;
      waiting = false;
    },
  };
}
