import type { Clock } from "../../base/clock.ts";
import type { AgentMetric } from "../status/agent-metrics.ts";
import type { IdentityOptions } from "./workload-identity.ts";

/** What the CA was asked for, as Istio counts it. */
export interface CountedSigning {
  readonly sign: IdentityOptions["sign"];
  readonly metrics: readonly AgentMetric[];
}

/** Counts requests to the CA: all, those that failed, those that came after one that failed, and how long they took together. */
export function countSigning(sign: IdentityOptions["sign"], clock: Clock): CountedSigning {
  const counts = { num_outgoing_requests: 0, num_failed_outgoing_requests: 0, num_outgoing_retries: 0, outgoing_latency: 0 };
  let failed = false;
  return {
    async sign(csr, ttlMs) {
      counts.num_outgoing_requests += 1;
      if (failed) counts.num_outgoing_retries += 1;
      failed = true;
      const began = clock.monotonic();
      try {
        const signed = await sign(csr, ttlMs);
        failed = false;
        return signed;
      } finally {
        if (failed) counts.num_failed_outgoing_requests += 1;
        counts.outgoing_latency += clock.monotonic() - began;
      }
    },
    metrics: (Object.keys(counts) as (keyof typeof counts)[]).map((name) => ({
      name,
      type: "counter",
      values: () => [{ labels: { request_type: "csr" }, value: counts[name] }],
    })),
  };
}
