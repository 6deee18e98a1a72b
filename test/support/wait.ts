import { systemClock } from "../../src/base/clock.ts";

/** How long anything is waited for: a hang is to end, and a busy machine is not to be taken for one. */
const PATIENCE_MS = 60_000;

/** Polls until `probe` gives a value (not undefined or false). Fails with the last error or state, so that a time-out explains itself. */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = PATIENCE_MS,
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

/** Resolves when an assertion holds; fails with what it says against it. */
export const holds = (assertion: () => unknown): Promise<boolean> =>
  eventually("what is asserted", async () => {
    await assertion();
    return true;
  });

/** Resolves with the latest line of a program's log that has a text: a log arrives in its own time, also after an answer that it belongs to. */
export const says = (program: { readonly log: () => string }, text: string | RegExp): Promise<string> =>
  eventually(`a line of the log has ${text}`, () =>
    program
      .log()
      .split("\n")
      .findLast((line) => (typeof text === "string" ? line.includes(text) : text.test(line))),
  );
