import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";

const DAY_MS = 24 * 3_600_000;
const LOOK_MS = 3_600_000;
/** Days before the end at which an operator is told, the last first. */
const STEPS = [1, 7, 30] as const;

/** A certificate whose end matters. */
export interface Ending {
  readonly name: string;
  readonly endsAt: number;
}

export interface ExpiryOptions {
  readonly clock: Clock;
  readonly log: Log;
  endings(): readonly Ending[];
}

/** Looks every hour. */
export interface ExpiryWarnings {
  /** Looks now: other certificates are in force. */
  look(): void;
  stop(): void;
}

/** Warns 30, 7 and 1 days before certificates end, once for each step and certificate, and daily after the end. */
export function warnOfExpiry({ clock, log, endings }: ExpiryOptions): ExpiryWarnings {
  const told = new Map<string, number>();
  let cancel: () => void = () => {};
  const look = (): void => {
    for (const { name, endsAt } of endings()) {
      const days = (endsAt - clock.now()) / DAY_MS;
      const step = days <= 0 ? Math.floor(days) : STEPS.find((limit) => days <= limit);
      const id = `${name} ${endsAt}`;
      if (step === undefined || (told.get(id) ?? Infinity) <= step) continue;
      told.set(id, step);
      const at = { certificate: name, ends: new Date(endsAt).toISOString() };
      if (days <= 0) log.error(at, "the certificate has ended: nothing it signed is valid");
      else log[step === 1 ? "error" : "warn"](at, `the certificate ends in ${Math.ceil(days)} ${days <= 1 ? "day" : "days"}`);
    }
    cancel();
    cancel = clock.after(LOOK_MS, look);
  };
  look();
  return { look, stop: () => cancel() };
}

/** Whether an operator should act: a month is left, or less. */
export const endsSoon = (endsAt: number, now: number): boolean => endsAt - now <= STEPS[2] * DAY_MS;
