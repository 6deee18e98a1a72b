import { createHistogram } from "node:perf_hooks";
import { Gauge, type Registry } from "prom-client";
import type { Clock } from "../base/clock.ts";

/** A look wakes the process, which costs more than the look: ten times a second it is not felt, and a delay worth knowing about is rarely missed. */
const LOOK_MS = 100;
const PREFIX = "nodejs_eventloop_lag";
const NS_PER_MS = 1e6;
const NS_PER_S = 1e9;

/** What is told of the delays since the metrics were last asked for. */
const STATISTICS = ["min", "max", "mean", "stddev", "p50", "p90", "p99"] as const;

/**
 * Tells how late the event loop is, under the names that prom-client has for it, and instead of it: its own watch wakes the process a hundred times a second,
 * which is felt in a control plane that has nothing to do, and counts the time between two looks as a delay.
 */
export function watchLoopLag(registry: Registry, clock: Pick<Clock, "after" | "monotonic">): void {
  const seen = createHistogram();
  let last = 0;
  const look = (): void => {
    const due = clock.monotonic() + LOOK_MS;
    clock.after(LOOK_MS, () => {
      last = Math.max(0, clock.monotonic() - due);
      seen.record(Math.max(1, Math.round(last * NS_PER_MS)));
      look();
    });
  };
  look();
  const gaugeOf = (name: string, help: string, collect: () => void = () => {}): Gauge => {
    registry.removeSingleMetric(name);
    return new Gauge({ name, help, registers: [registry], collect });
  };
  // The first of them is asked first, and fills in the others.
  const latest = gaugeOf(`${PREFIX}_seconds`, "How late the event loop was at the last look.", () => {
    latest.set(last / 1000);
    for (const [statistic, gauge] of gauges) gauge.set(secondsOf(seen, statistic));
    seen.reset();
  });
  const gauges = STATISTICS.map(
    (statistic) => [statistic, gaugeOf(`${PREFIX}_${statistic}_seconds`, `How late the event loop was: ${statistic}.`)] as const,
  );
}

/** 0 where nothing has been seen yet. */
function secondsOf(seen: ReturnType<typeof createHistogram>, statistic: (typeof STATISTICS)[number]): number {
  if (seen.count === 0) return 0;
  const ns = statistic.startsWith("p") ? seen.percentile(Number(statistic.slice(1))) : seen[statistic as "min" | "max" | "mean" | "stddev"];
  return ns / NS_PER_S;
}
