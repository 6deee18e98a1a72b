import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { ReadinessProbe } from "./readiness-probe.ts";

export interface HealthWatchOptions {
  readonly probe: Pick<ReadinessProbe, "initialDelayMs" | "periodMs" | "successes" | "failures">;
  /** Whether there is anything to ask yet: an Envoy that is still starting is no illness. */
  started(): Promise<boolean>;
  /** What is wrong, undefined where nothing is. */
  ask(): Promise<string | undefined>;
  changed(fault: string | undefined): void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What is known of a workload's health. */
export interface HealthWatch {
  /** Undefined until enough answers of one sort have come. */
  readonly state: { readonly fault: string | undefined } | undefined;
}

const START_POLL_MS = 250;

/** Asks until the signal ends it. A state changes after as many equal answers in a row as the probe demands. */
export function watchHealth({ probe, started, ask, changed, clock, signal }: HealthWatchOptions): HealthWatch {
  let state: HealthWatch["state"];
  let row = { well: true, length: 0 };
  const take = (fault: string | undefined): void => {
    const well = fault === undefined;
    row = { well, length: row.well === well ? row.length + 1 : 1 };
    const isNews = state === undefined || (state.fault === undefined) !== well;
    if (!isNews || row.length < (well ? probe.successes : probe.failures)) return;
    state = { fault };
    changed(fault);
  };
  const run = async (): Promise<void> => {
    await clock.sleep(probe.initialDelayMs, signal);
    while (!(await started())) await clock.sleep(START_POLL_MS, signal);
    for (;;) {
      const asked = clock.monotonic();
      const fault = await ask().catch(messageOf);
      signal.throwIfAborted();
      take(fault);
      await clock.sleep(Math.max(0, probe.periodMs - (clock.monotonic() - asked)), signal);
    }
  };
  run().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return {
    get state() {
      return state;
    },
  };
}
