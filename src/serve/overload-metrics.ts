import { Counter, type Registry } from "prom-client";
import type { XdsMetrics } from "../xds/metrics.ts";
import type { ServerLoad } from "../xds/server.ts";
import { collectedGauge } from "./collected-gauge.ts";
import type { MemoryState } from "./memory-watch.ts";
import { QuickHistogram } from "./quick-histogram.ts";

/** A slice is meant to last 5 ms; 20 is what nobody else on the loop should wait longer than. */
const SLICES = [0.005, 0.01, 0.02, 0.05, 0.1, 0.5];

/** What is counted of a control plane that has more to do than it can do at once. */
export function overloadMetrics(registry: Registry): Pick<XdsMetrics, "turnedAway" | "shed" | "slice"> {
  const own = { registers: [registry] };
  const turnedAway = new Counter({ ...own, name: "istiod_xds_turned_away_total", help: "Streams not let in because too many wait." });
  const shed = new Counter({ ...own, name: "istiod_xds_shed_total", help: "Streams cut because they do not read and memory is short." });
  const slices = new QuickHistogram({
    ...own,
    name: "istiod_xds_slice_seconds",
    help: "Seconds of work for proxies without a pause.",
    buckets: SLICES,
  });
  return { turnedAway: () => turnedAway.inc(), shed: () => shed.inc(), slice: (ms) => slices.add(ms / 1000) };
}

/** Adds the gauges that are read when they are asked for. */
export function observeLoad(registry: Registry, load: () => ServerLoad, memory: () => MemoryState): void {
  const gauge = (name: string, help: string, read: () => number): void => collectedGauge(registry, name, { help, read });
  gauge("istiod_xds_waiting", "Streams that wait to be let in.", () => load().waiting);
  gauge("istiod_xds_unsent_bytes", "Bytes on their way to proxies.", () => load().unsentBytes);
  gauge("istiod_memory_limit_bytes", "Memory that this process may use; 0 where nothing limits it.", () => memory().limitBytes ?? 0);
  gauge("istiod_heap_live_bytes", "What was left of the heap after the last full collection.", () => memory().heapBytes);
  gauge(
    "istiod_memory_used_ratio",
    "Memory in use, as a share of what may be used: of the process or of the heap, whichever is higher.",
    () => memory().used,
  );
}
