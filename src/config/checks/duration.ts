import type { Duration } from "@bufbuild/protobuf/wkt";

const NANOS_PER_MILLI = 1_000_000;

/** Milliseconds, fractions included. */
export const millisOf = (duration: Duration): number => Number(duration.seconds) * 1000 + duration.nanos / NANOS_PER_MILLI;

/** Durations that set timers: at least one millisecond, and no finer than that. */
export function durationFault(duration: Duration): string | undefined {
  if (millisOf(duration) < 1) return "must be at least 1ms";
  return duration.nanos % NANOS_PER_MILLI === 0 ? undefined : "must be a whole number of milliseconds";
}

/** Durations that may also be zero, where zero switches something off. */
export function durationOrZeroFault(duration: Duration): string | undefined {
  return duration.seconds === 0n && duration.nanos === 0 ? undefined : durationFault(duration);
}

/** What keeps a duration from being a whole number of seconds. */
export const wholeSecondsFault = (duration: Duration): string | undefined =>
  duration.nanos === 0 ? undefined : "must be a whole number of seconds";
