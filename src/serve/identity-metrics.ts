import { Counter, type Registry } from "prom-client";
import type { CaMetrics } from "../ca/ca-metrics.ts";
import { collectedGauge } from "./collected-gauge.ts";

/** Everything counted about callers and certificates, under Istio's names where Istio has one. */
export interface IdentityMetrics {
  readonly ca: CaMetrics;
  /** A caller was turned away: it did not prove who it is, is not who its node says, or never came to say so (`connection`). */
  refused(service: "xds" | "ca" | "connection" | "debug" | "reflection", reason: string): void;
  /** Gauges that are looked up when somebody asks; only where there is a CA. */
  observe(source: ExpirySource): void;
}

export interface ExpirySource {
  /** Milliseconds since the epoch. */
  readonly rootEndsAt: () => number;
  readonly chainEndsAt: () => number;
  readonly reloadFailed: () => boolean;
  readonly now: () => number;
}

/** Registers them; all are there from the start, at 0. */
export function identityMetrics(registry: Registry): IdentityMetrics {
  const counter = (name: string, help: string): (() => void) => {
    const made = new Counter({ name, help, registers: [registry] });
    return () => made.inc();
  };
  const refused = new Counter({
    name: "istiod_refused_callers",
    help: "Callers turned away, by service and reason.",
    labelNames: ["service", "reason"],
    registers: [registry],
  });
  return {
    ca: {
      request: counter("citadel_server_csr_count", "Requests for certificates."),
      unauthenticated: counter("citadel_server_authentication_failure_count", "Requests whose sender did not prove who it is."),
      noIdentity: counter("citadel_server_id_extraction_err_count", "Requests whose sender is known but is no workload."),
      malformed: counter("citadel_server_csr_parsing_err_count", "Requests that could not be read."),
      signFailed: counter("citadel_server_csr_sign_err_count", "Requests that could not be signed."),
      issued: counter("citadel_server_success_cert_issuance_count", "Certificates given out."),
    },
    refused: (service, reason) => refused.inc({ service, reason }),
    observe: (source) => observeExpiry(registry, source),
  };
}

function observeExpiry(registry: Registry, { rootEndsAt, chainEndsAt, reloadFailed, now }: ExpirySource): void {
  const gauge = (name: string, help: string, read: () => number): void => collectedGauge(registry, name, { help, read });
  for (const [name, what, endsAt] of [
    ["root_cert", "root certificate", rootEndsAt],
    ["cert_chain", "CA certificate and those above it", chainEndsAt],
  ] as const) {
    gauge(`citadel_server_${name}_expiry_timestamp`, `Unix time at which the ${what} ends.`, () => endsAt() / 1_000);
    gauge(`citadel_server_${name}_expiry_seconds`, `Seconds until the ${what} ends; negative after.`, () => (endsAt() - now()) / 1_000);
  }
  gauge("istiod_ca_reload_failed", "1 while the files of the CA are wrong and the last good ones are in force.", () =>
    Number(reloadFailed()),
  );
}
