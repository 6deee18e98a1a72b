import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import type { CircuitBreakersSchema } from "../../gen/envoy/config/cluster/v3/circuit_breaker_pb.js";
import type { LimitsInput } from "./cluster-input.ts";

const NO_LIMIT = 0xffff_ffff;

/** What is not limited by configuration is not limited at all: limits belong to whoever runs the destination, not to a default. A retry budget, where there is one, goes before the number of retries. */
export function circuitBreakers(input: LimitsInput): MessageInitShape<typeof CircuitBreakersSchema> {
  const { connections, pendingRequests, requests, retries, retryBudget } = input;
  return {
    thresholds: [
      {
        maxConnections: connections ?? NO_LIMIT,
        maxPendingRequests: pendingRequests ?? NO_LIMIT,
        maxRequests: requests ?? NO_LIMIT,
        maxRetries: retries ?? NO_LIMIT,
        ...(retryBudget !== undefined && {
          retryBudget: {
            budgetPercent: { value: retryBudget.percent },
            minRetryConcurrency: retryBudget.minConcurrency,
            ...(retryBudget.intervalMs !== undefined && { budgetInterval: durationOfMs(retryBudget.intervalMs) }),
          },
        }),
      },
    ],
  };
}
