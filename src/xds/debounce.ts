import type { Clock } from "../base/clock.ts";

export interface DebounceSettings {
  /** Quiet time that ends a batch (Istio's PILOT_DEBOUNCE_AFTER). */
  readonly afterMs: number;
  /** The longest a change waits (PILOT_DEBOUNCE_MAX). */
  readonly maxMs: number;
}

export interface Debounce<T> {
  /** Notes a change. An urgent one is passed on at once, alone (PILOT_ENABLE_EDS_DEBOUNCE=false). */
  note(change: T, urgent?: boolean): void;
  /** Passes on what is waiting, now. */
  flush(): void;
  /** Drops what is waiting. */
  stop(): void;
}

/**
 * Turns a stream of changes into batches: the first change after a quiet time is passed on at once, so that a single edit takes effect without
 * delay; those that follow closely are gathered until it is quiet again, but no longer than the maximum.
 */
export function createDebounce<T>(settings: DebounceSettings, clock: Clock, pass: (batch: readonly T[]) => void): Debounce<T> {
  let batch: T[] = [];
  let firstAt = 0;
  let cancel: (() => void) | undefined;

  const open = (): void => {
    cancel?.();
    const left = batch.length === 0 ? settings.afterMs : Math.min(settings.afterMs, firstAt + settings.maxMs - clock.monotonic());
    cancel = clock.after(Math.max(0, left), expire);
  };
  const expire = (): void => {
    cancel = undefined;
    if (batch.length > 0) flush();
  };
  const flush = (): void => {
    const passed = batch;
    batch = [];
    open();
    if (passed.length > 0) pass(passed);
  };
  return {
    note(change, urgent = false) {
      if (urgent) return pass([change]);
      if (batch.length === 0) firstAt = clock.monotonic();
      batch.push(change);
      if (cancel === undefined) flush();
      else open();
    },
    flush,
    stop() {
      cancel?.();
      cancel = undefined;
      batch = [];
    },
  };
}
