import type { Clock } from "./clock.ts";

/** No slice of synchronous work is meant to be longer: probes, webhooks and signing share the loop. */
export const SLICE_MS = 5;

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

export interface SliceOptions {
  readonly sliceMs?: number;
  /** Told how long each slice lasted. */
  measured?(ms: number): void;
}

/** Runs a generator to its end, giving way to other events whenever a slice of time is used up. */
export async function runSliced(
  steps: Iterable<void>,
  clock: Pick<Clock, "monotonic">,
  { sliceMs = SLICE_MS, measured = () => {} }: SliceOptions = {},
): Promise<void> {
  let start = clock.monotonic();
  for (const _ of steps) {
    const ms = clock.monotonic() - start;
    if (ms < sliceMs) continue;
    measured(ms);
    await nextTurn();
    start = clock.monotonic();
  }
  measured(clock.monotonic() - start);
}

/** The same for steps that come to a result. */
export async function finishSliced<T>(steps: Iterator<void, T>, clock: Pick<Clock, "monotonic">): Promise<T> {
  for (let start = clock.monotonic(); ; ) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (clock.monotonic() - start < SLICE_MS) continue;
    await nextTurn();
    start = clock.monotonic();
  }
}

/** Resolves after the events that are waiting have been handled. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
