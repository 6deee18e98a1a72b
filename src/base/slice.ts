import type { Clock } from "./clock.ts";

/** No slice of synchronous work is meant to be longer: probes, webhooks and signing share the loop. */
export const SLICE_MS = 10;

/**
 * Counts the time of long work. Call the result between steps: it gives undefined while the slice lasts (no promise, so it costs a clock read),
 * and something to await when it is used up, after which the next slice begins.
 */
export function createSlice(clock: Pick<Clock, "monotonic">, sliceMs = SLICE_MS): () => Promise<void> | undefined {
  let end = clock.monotonic() + sliceMs;
  return () => {
    if (clock.monotonic() < end) return undefined;
    return nextTurn().then(() => {
      end = clock.monotonic() + sliceMs;
    });
  };
}

/** Runs a generator to its end, giving way to other events whenever a slice of time is used up. */
export async function runSliced(steps: Iterable<void>, clock: Pick<Clock, "monotonic">, sliceMs = SLICE_MS): Promise<void> {
  const slice = createSlice(clock, sliceMs);
  for (const _ of steps) {
    const rest = slice();
    if (rest !== undefined) await rest;
  }
}

/** Resolves after the events that are waiting have been handled. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
