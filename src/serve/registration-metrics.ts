import { Counter, type Registry } from "prom-client";
import type { RegistrationEvent } from "../sources/registered/registered-workloads.ts";

const COUNTERS = {
  registered: ["auto_registration_success_total", "Workloads that registered themselves."],
  updated: ["auto_registration_updates_total", "Registered workloads that connected again."],
  disconnected: ["auto_registration_unregister_total", "Registered workloads whose last connection ended."],
  removed: ["auto_registration_deletes_total", "Registered workloads that were taken out."],
  refused: ["auto_registration_errors_total", "Workloads that were not registered although they asked."],
} as const satisfies Record<RegistrationEvent, readonly [string, string]>;

/** Counts registrations under Istio's names. */
export function registrationMetrics(registry: Registry): (event: RegistrationEvent) => void {
  const made = new Map(
    Object.entries(COUNTERS).map(([event, [name, help]]) => [event, new Counter({ name, help, registers: [registry] })]),
  );
  return (event) => made.get(event)?.inc();
}
