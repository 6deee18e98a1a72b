import type { Parts } from "./control-plane.ts";
import { followHeap } from "./live-heap.ts";
import { followMemoryLimit, type MemoryWatch, watchMemory } from "./memory-watch.ts";

/** Results nobody uses that are forgotten at each look while memory is short. */
const SWEEP_NODES = 5_000;

/** Watches memory, and where it is short lets go of what this control plane can do without. */
export function guardMemory({
  options,
  mesh,
  world,
  xds,
  leases,
  metrics,
}: Pick<Parts, "options" | "mesh" | "world" | "xds" | "leases" | "metrics">): MemoryWatch {
  const watch = watchMemory({
    clock: options.clock,
    log: options.log,
    limitBytes: followMemoryLimit(options.clock, () => mesh.current.settings.memoryLimitBytes),
    residentBytes: () => process.memoryUsage.rss(),
    heap: followHeap([...(options.env.NODE_OPTIONS ?? "").split(/\s+/), ...process.execArgv]),
    relieve(pressure) {
      xds.relieve(pressure);
      if (pressure === "none") return;
      leases.release(new Set(xds.nodes()));
      world.engine.sweep(SWEEP_NODES);
    },
  });
  metrics.observeLoad(xds.load, watch.state);
  return watch;
}
