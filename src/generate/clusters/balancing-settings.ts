import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ClusterInput, LoadBalancerAlgorithm, OutlierInput, WarmupInput } from "../../envoy/cluster/index.ts";
import {
  type LoadBalancerSettings,
  type LoadBalancerSettings_ConsistentHashLB,
  type OutlierDetection,
  LoadBalancerSettings_SimpleLB as SimpleLb,
} from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";

/** Ring size where a hash is asked for in the old way, without naming an algorithm. */
const DEFAULT_RING_SIZE = 1_024;

/** Whether connections keep the address the client chose, instead of being balanced. */
export const isPassthrough = (settings: LoadBalancerSettings | undefined): boolean =>
  settings?.lbPolicy.case === "simple" && settings.lbPolicy.value === SimpleLb.PASSTHROUGH;

/** The algorithm a DestinationRule asks for; least request where it says nothing, as in Istio. */
export function algorithmOf(settings: LoadBalancerSettings | undefined, discovery: ClusterInput["discovery"]): LoadBalancerAlgorithm {
  if (discovery === "originalDst") return { kind: "clusterProvided" };
  const policy = settings?.lbPolicy;
  if (policy?.case === "consistentHash") return hashAlgorithm(policy.value);
  const warmup = warmupOf(settings);
  switch (policy?.value) {
    case SimpleLb.ROUND_ROBIN:
      return { kind: "roundRobin", warmup };
    case SimpleLb.RANDOM:
      return { kind: "random" };
    default:
      return { kind: "leastRequest", warmup };
  }
}

/** Commands of Redis are spread by their keys, whatever a rule says: another server would not know them. */
export const redisAlgorithm = (discovery: ClusterInput["discovery"]): LoadBalancerAlgorithm =>
  discovery === "originalDst" ? { kind: "clusterProvided" } : { kind: "maglev", tableSize: undefined };

function hashAlgorithm({ hashAlgorithm: chosen, minimumRingSize }: LoadBalancerSettings_ConsistentHashLB): LoadBalancerAlgorithm {
  switch (chosen.case) {
    case "maglev":
      return { kind: "maglev", tableSize: Number(chosen.value.tableSize) || undefined };
    case "ringHash":
      return { kind: "ringHash", minimumRingSize: Number(chosen.value.minimumRingSize) || undefined };
    default:
      return { kind: "ringHash", minimumRingSize: Number(minimumRingSize) || DEFAULT_RING_SIZE };
  }
}

function warmupOf(settings: LoadBalancerSettings | undefined): WarmupInput | undefined {
  const window = settings?.warmup?.duration ?? settings?.warmupDurationSecs;
  if (window === undefined) return undefined;
  const own = settings?.warmup;
  if (own === undefined) return { windowMs: durationMs(window), minimumPercent: undefined, aggression: undefined };
  return { windowMs: durationMs(window), minimumPercent: own.minimumPercent ?? 10, aggression: own.aggression ?? 1 };
}

/** Outlier detection; an empty block switches it on with Envoy's defaults. */
export function outlierOf(settings: OutlierDetection | undefined): OutlierInput | undefined {
  if (settings === undefined) return undefined;
  return {
    consecutive5xx: settings.consecutive5xxErrors,
    consecutiveGatewayFailures: settings.consecutiveGatewayErrors,
    splitLocalOrigin: settings.splitExternalLocalOriginErrors,
    consecutiveLocalOriginFailures: settings.consecutiveLocalOriginFailures,
    intervalMs: settings.interval === undefined ? undefined : durationMs(settings.interval),
    baseEjectionMs: settings.baseEjectionTime === undefined ? undefined : durationMs(settings.baseEjectionTime),
    maxEjectionPercent: settings.maxEjectionPercent > 0 ? settings.maxEjectionPercent : undefined,
  };
}
