import { systemClock } from "../../src/base/clock.ts";

/** Polls until `probe` gives a value (not undefined or false). Fails with the last error or state, so that a time-out explains itself. */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 15_000,
): Promise<T> {
  const deadline = systemClock.monotonic() + timeoutMs;
  let last: unknown = "no value";
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    if (systemClock.monotonic() > deadline)
      throw new Error(`${what}: not after ${timeoutMs} ms; last: ${last instanceof Error ? last.message : String(last)}`);
    await systemClock.sleep(25);
  }
}
