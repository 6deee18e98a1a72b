import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { watchLoopLag } from "./loop-lag.ts";
import { createMetrics } from "./metrics.ts";

/** A clock whose timers go off when they are told to, however late that is. */
function lateClock() {
  let now = 0;
  let due: (() => void) | undefined;
  return {
    monotonic: () => now,
    after(_ms: number, fn: () => void) {
      due = fn;
      return () => {};
    },
    ring(after: number) {
      now += after;
      due?.();
    },
  };
}

const figureIn = (text: string, name: string): number => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);

describe("watchLoopLag", () => {
  it("tells how late looks were, not how far apart they are", async () => {
    const [registry, clock] = [new Registry(), lateClock()];
    watchLoopLag(registry, clock);
    clock.ring(100);
    clock.ring(140);
    clock.ring(102);
    const text = await registry.metrics();
    expect(figureIn(text, "nodejs_eventloop_lag_seconds")).toBeCloseTo(0.002);
    expect(figureIn(text, "nodejs_eventloop_lag_max_seconds")).toBeCloseTo(0.04, 3);
    expect(figureIn(text, "nodejs_eventloop_lag_mean_seconds")).toBeCloseTo(0.014, 3);
    expect(figureIn(text, "nodejs_eventloop_lag_min_seconds")).toBeCloseTo(0, 5);
    expect(figureIn(await registry.metrics(), "nodejs_eventloop_lag_max_seconds"), "since the last time").toBe(0);
  });

  it("takes the place of prom-client's", async () => {
    const text = await createMetrics("1.0").text();
    const names = text.matchAll(/^# TYPE (nodejs_eventloop_lag\S*)/gm).map(([, name]) => name);
    expect([...names].sort()).toEqual(
      ["max", "mean", "min", "p50", "p90", "p99", "seconds", "stddev"].map((name) =>
        name === "seconds" ? "nodejs_eventloop_lag_seconds" : `nodejs_eventloop_lag_${name}_seconds`,
      ),
    );
  });
});
