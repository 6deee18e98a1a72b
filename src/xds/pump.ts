import type { Clock } from "../base/clock.ts";
import { nextTurn, runSliced } from "../base/slice.ts";

/** Works off a queue in slices, as long as there is something in it. */
export interface Pump {
  /** There may be something to do. */
  start(): void;
  /** Resolves when there is nothing left. */
  idle(): Promise<void>;
}

export interface PumpOptions {
  readonly clock: Clock;
  readonly queue: { readonly empty: boolean; steps(): Iterable<void> };
  /** A step was done: there may be room for somebody. */
  advanced(): void;
  /** Told how long each slice lasted. */
  slice(ms: number): void;
}

export function createPump({ clock, queue, advanced, slice }: PumpOptions): Pump {
  let pumping: Promise<void> | undefined;
  function* steps(): Iterable<void> {
    for (const _ of queue.steps()) {
      advanced();
      yield;
    }
  }
  const start = (): void => {
    pumping ??= pump();
  };
  const pump = async (): Promise<void> => {
    await nextTurn();
    try {
      await runSliced(steps(), clock, { measured: slice });
    } finally {
      pumping = undefined;
      advanced();
      if (!queue.empty) start();
    }
  };
  return {
    start,
    async idle() {
      while (pumping !== undefined) await pumping;
    },
  };
}
