import type { Clock } from "../../src/base/clock.ts";

/** A clock whose hands are turned by the test. */
export interface ManualClock extends Clock {
  /** Moves time on, calling what falls due in order. */
  advance(ms: number): void;
  /** How many timers wait for it. */
  readonly waiting: number;
}

export function manualClock(): ManualClock {
  let now = 0;
  let order = 0;
  const timers = new Map<number, { readonly at: number; readonly fn: () => void }>();
  const after = (ms: number, fn: () => void): (() => void) => {
    order += 1;
    const id = order;
    timers.set(id, { at: now + ms, fn });
    return () => timers.delete(id);
  };
  return {
    now: () => 1_700_000_000_000 + now,
    monotonic: () => now,
    after,
    sleep: (ms) => new Promise((resolve) => after(ms, resolve)),
    get waiting() {
      return timers.size;
    },
    advance(ms) {
      const end = now + ms;
      for (;;) {
        const due = [...timers].filter(([, timer]) => timer.at <= end).sort(([a, x], [b, y]) => x.at - y.at || a - b)[0];
        if (due === undefined) break;
        timers.delete(due[0]);
        now = due[1].at;
        due[1].fn();
      }
      now = end;
    },
  };
}
