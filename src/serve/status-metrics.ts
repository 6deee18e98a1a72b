import { Counter, Gauge, type Registry } from "prom-client";
import type { StatusMetrics } from "../config/status/object-report.ts";

/** What is counted of the statuses that are written to objects. */
export function statusMetrics(registry: Registry): StatusMetrics {
  const own = { registers: [registry] };
  const attempts = new Counter({
    ...own,
    name: "istiod_status_writes_total",
    help: "Objects whose status was looked at to be written, by what came of it.",
    labelNames: ["outcome"],
  });
  const failures = new Counter({
    ...own,
    name: "istiod_status_write_failures_total",
    help: "Statuses that could not be written and are tried again, by the reason the API server gives.",
    labelNames: ["reason"],
  });
  const waiting = new Gauge({ ...own, name: "istiod_status_queue_depth", help: "Objects whose status waits to be written." });
  return {
    wrote: (outcome) => attempts.inc({ outcome }),
    failed: (reason) => failures.inc({ reason }),
    waiting: (count) => waiting.set(count),
  };
}
