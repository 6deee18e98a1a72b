import { Counter, Histogram, type Registry } from "prom-client";
import { kindOf } from "../config/kinds/index.ts";
import type { AdmissionRequest } from "../webhooks/admission-review.ts";
import type { WebhookMetrics } from "../webhooks/webhook-metrics.ts";

const JUDGED = ["group", "version", "resource"] as const;
const SECONDS = [0.0005, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];

/** Metrics of the webhooks under Istio's names. */
export function webhookMetrics(registry: Registry): WebhookMetrics {
  const own = { registers: [registry] };
  const injections = (what: string, help: string): Counter => new Counter({ ...own, name: `sidecar_injection_${what}_total`, help });
  const requests = injections("requests", "Pods that came for injection.");
  const outcomes = {
    injected: injections("success", "Pods that were injected."),
    skipped: injections("skip", "Pods that were let through as they are."),
    failed: injections("failure", "Pods that could not be injected."),
  };
  const time = new Histogram({
    ...own,
    name: "sidecar_injection_time_seconds",
    help: "Time that injecting one pod takes.",
    buckets: SECONDS,
  });
  const passed = new Counter({ ...own, name: "galley_validation_passed", help: "Objects that were let in.", labelNames: JUDGED });
  const failed = new Counter({
    ...own,
    name: "galley_validation_failed",
    help: "Objects that were refused, by the code of the first problem.",
    labelNames: [...JUDGED, "reason"],
  });
  const faults = new Counter({
    ...own,
    name: "galley_validation_http_error",
    help: "Requests for validation that could not be understood.",
    labelNames: ["status"],
  });
  const counter = (name: string, help: string, labelNames: readonly string[] = []): Counter =>
    new Counter({ ...own, name, help, labelNames: [...labelNames] });
  const attempts = counter("webhook_patch_attempts_total", "Changes of injection webhooks.", ["name"]);
  const failures = counter("webhook_patch_failures_total", "Changes of injection webhooks that failed.", ["name", "reason"]);
  const updates = counter("galley_validation_config_updates", "Changes of validation webhooks.");
  const updateErrors = counter("galley_validation_config_update_error", "Changes of validation webhooks that failed.", ["reason"]);
  return {
    patched(what, name, failure) {
      if (what === "injector") attempts.inc({ name });
      if (what === "injector" && failure !== undefined) failures.inc({ name, reason: failure });
      if (what === "validator" && failure === undefined) updates.inc();
      if (what === "validator" && failure !== undefined) updateErrors.inc({ reason: failure });
    },
    injectionRequested: () => requests.inc(),
    injected(outcome, seconds) {
      outcomes[outcome].inc();
      if (outcome === "injected") time.observe(seconds);
    },
    validated(kind, reason) {
      const labels = labelsOf(kind);
      if (reason === undefined) passed.inc(labels);
      else failed.inc({ ...labels, reason });
    },
    validationHttpError: (status) => faults.inc({ status: String(status) }),
  };
}

/** Anybody may call the webhook: only kinds that there are become series. */
function labelsOf({ group, version, kind }: AdmissionRequest["kind"]): Record<(typeof JUDGED)[number], string> {
  const def = kindOf(group, kind);
  if (def === undefined) return { group: "other", version: "other", resource: "other" };
  return { group, version: def.versions.includes(version) ? version : "other", resource: kind };
}
