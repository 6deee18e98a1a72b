import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import { Cluster_LbPolicy, type Cluster_SlowStartConfigSchema, type ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { HealthStatus } from "../../gen/envoy/config/core/v3/health_check_pb.js";
import type { LoadBalancerAlgorithm, LoadBalancerInput, WarmupInput } from "./cluster-input.ts";

type ClusterInit = MessageInitShape<typeof ClusterSchema>;

/** Runtime key under which an operator may override the aggression of a warm-up; Envoy demands one. */
const AGGRESSION_KEY = "upstream.warmup_aggression";

/** Envoy's own list, with those that are draining. */
const SESSION_STATUSES = [HealthStatus.HEALTHY, HealthStatus.DRAINING, HealthStatus.UNKNOWN, HealthStatus.DEGRADED];

/** Envoy takes no larger one. */
const LARGEST_RING = 8_388_608;

/** The fields of a cluster that say how a host is chosen. */
export function loadBalancerFields(input: LoadBalancerInput): Pick<ClusterInit, "lbPolicy" | "lbConfig" | "commonLbConfig"> {
  const { algorithm, panicThreshold, localities, drainsSessions } = input;
  const common = {
    ...(panicThreshold !== undefined && { healthyPanicThreshold: { value: panicThreshold } }),
    ...(localities !== undefined && { localityConfigSpecifier: localityConfig(localities) }),
    ...(drainsSessions === true && { overrideHostStatus: { statuses: SESSION_STATUSES } }),
  };
  return { ...algorithmFields(algorithm), ...(Object.keys(common).length > 0 && { commonLbConfig: common }) };
}

function localityConfig(localities: NonNullable<LoadBalancerInput["localities"]>) {
  if (localities === "weighted") return { case: "localityWeightedLbConfig", value: {} } as const;
  const { enabled, minClusterSize } = localities;
  return {
    case: "zoneAwareLbConfig",
    value: {
      ...(!enabled && { routingEnabled: { value: 0 } }),
      ...(minClusterSize !== undefined && { minClusterSize: BigInt(minClusterSize) }),
    },
  } as const;
}

function algorithmFields(algorithm: LoadBalancerAlgorithm): Pick<ClusterInit, "lbPolicy" | "lbConfig"> {
  switch (algorithm.kind) {
    case "random":
      return { lbPolicy: Cluster_LbPolicy.RANDOM };
    case "clusterProvided":
      return { lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED };
    case "roundRobin":
      return {
        lbPolicy: Cluster_LbPolicy.ROUND_ROBIN,
        ...(algorithm.warmup !== undefined && {
          lbConfig: { case: "roundRobinLbConfig", value: { slowStartConfig: slowStart(algorithm.warmup) } },
        }),
      };
    case "leastRequest":
      return {
        lbPolicy: Cluster_LbPolicy.LEAST_REQUEST,
        ...(algorithm.warmup !== undefined && {
          lbConfig: { case: "leastRequestLbConfig", value: { slowStartConfig: slowStart(algorithm.warmup) } },
        }),
      };
    case "ringHash":
      return {
        lbPolicy: Cluster_LbPolicy.RING_HASH,
        ...(algorithm.minimumRingSize !== undefined && {
          lbConfig: { case: "ringHashLbConfig", value: { minimumRingSize: BigInt(Math.min(algorithm.minimumRingSize, LARGEST_RING)) } },
        }),
      };
    case "maglev":
      return {
        lbPolicy: Cluster_LbPolicy.MAGLEV,
        ...(algorithm.tableSize !== undefined && {
          lbConfig: { case: "maglevLbConfig", value: { tableSize: BigInt(algorithm.tableSize) } },
        }),
      };
  }
}

function slowStart(warmup: WarmupInput): MessageInitShape<typeof Cluster_SlowStartConfigSchema> {
  return {
    slowStartWindow: durationOfMs(warmup.windowMs),
    ...(warmup.aggression !== undefined && { aggression: { defaultValue: warmup.aggression, runtimeKey: AGGRESSION_KEY } }),
    ...(warmup.minimumPercent !== undefined && { minWeightPercent: { value: warmup.minimumPercent } }),
  };
}
