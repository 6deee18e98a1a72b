import type { GrpcError } from "../../wire/grpc-channel.ts";
import { GRPC_STATUS } from "../../wire/grpc-status.ts";
import type { AgentMetric } from "../status/agent-metrics.ts";

/** How streams ended: as peers end them when all is well, or otherwise. */
interface Ends {
  cancelled: number;
  error: number;
}

/** What became of streams between Envoy, the agent and the control plane, as Istio counts it. */
export interface XdsCounts {
  /** Messages of Envoy's, and of the control plane's. */
  requests: number;
  responses: number;
  /** Calls that reached no control plane. */
  failures: number;
  readonly istiod: Ends;
  readonly envoy: Ends;
}

export const createXdsCounts = (): XdsCounts => ({
  requests: 0,
  responses: 0,
  failures: 0,
  istiod: { cancelled: 0, error: 0 },
  envoy: { cancelled: 0, error: 0 },
});

const EXPECTED: readonly number[] = [GRPC_STATUS.CANCELLED, GRPC_STATUS.DEADLINE_EXCEEDED];

/** Notes the end of a stream. */
export function noteEnd(ends: Ends, error: GrpcError | undefined): void {
  ends[error === undefined || EXPECTED.includes(error.status) ? "cancelled" : "error"] += 1;
}

/** Notes a call that reaches nobody. */
export async function counted<T>(counts: XdsCounts, dialled: Promise<T>): Promise<T> {
  try {
    return await dialled;
  } catch (error) {
    counts.failures += 1;
    throw error;
  }
}

/** The counts under Istio's names. */
export function xdsMetrics(counts: XdsCounts): readonly AgentMetric[] {
  const single = (name: string, key: "requests" | "responses" | "failures"): AgentMetric => ({
    name,
    type: "counter",
    values: () => [{ value: counts[key] }],
  });
  const ends = (name: string, key: "istiod" | "envoy"): AgentMetric => ({
    name,
    type: "counter",
    values: () => Object.entries(counts[key]).map(([type, value]) => ({ labels: { type }, value })),
  });
  return [
    single("istiod_connection_failures", "failures"),
    ends("istiod_connection_terminations", "istiod"),
    ends("envoy_connection_terminations", "envoy"),
    single("xds_proxy_requests", "requests"),
    single("xds_proxy_responses", "responses"),
  ];
}
