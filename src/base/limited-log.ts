import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

const WINDOW_MS = 1_000;

/**
 * A log for lines that strangers can cause at will: `info` and `warn` take so many a second together, and the first line after those that were left out says how many that
 * were. All other levels pass as they are. Nobody may fill a disk by being refused.
 */
export function limitedLog(log: Log, clock: Pick<Clock, "monotonic">, perSecond: number): Log {
  let [since, written, leftOut] = [Number.NEGATIVE_INFINITY, 0, 0];
  const limited =
    (write: Log["info"]): Log["info"] =>
    (first, sentence) => {
      const now = clock.monotonic();
      if (now - since >= WINDOW_MS) {
        if (leftOut > 0) log.info({ lines: leftOut }, "more of the same was not logged");
        [since, written, leftOut] = [now, 0, 0];
      }
      if (written >= perSecond) leftOut += 1;
      else {
        written += 1;
        write(first, sentence);
      }
    };
  return { ...log, info: limited(log.info), warn: limited(log.warn) };
}
