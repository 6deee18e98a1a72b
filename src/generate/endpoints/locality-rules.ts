import type {
  LoadBalancerSettings,
  LocalityLoadBalancerSetting,
  OutlierDetection,
} from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Service } from "../../model/service.ts";
import type { LocalityRules } from "./assignment-key.ts";

export interface LocalityRulesQuery {
  readonly loadBalancer: LoadBalancerSettings | undefined;
  readonly outlier: OutlierDetection | undefined;
  readonly mesh: LocalityLoadBalancerSetting | undefined;
  readonly distribution: Service["trafficDistribution"];
}

const NEAREST = ["topology.istio.io/network", "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone"];

/** Priorities that stand for a service's `trafficDistribution`. */
const DISTRIBUTION = {
  preferClose: NEAREST.slice(0, 3),
  preferSameNode: [...NEAREST, "kubernetes.io/hostname"],
} as const satisfies Record<Exclude<Service["trafficDistribution"], "any">, readonly string[]>;

/**
 * The rules about places that hold for a destination: its DestinationRule's, else those its service asks for, else the mesh's. Failover
 * needs outlier detection, because without it Envoy never finds a locality unhealthy (Istio's documentation, "Locality failover").
 */
export function localityRulesOf({ loadBalancer, outlier, mesh, distribution }: LocalityRulesQuery): LocalityRules | undefined {
  const own = loadBalancer?.localityLbSetting;
  if (own === undefined && distribution !== "any") return { kind: "priority", labels: DISTRIBUTION[distribution] };
  const setting = own ?? mesh;
  if (setting?.enabled === false) return undefined;
  if (setting !== undefined && setting.distribute.length > 0) {
    return { kind: "distribute", rules: setting.distribute.map(({ from, to }) => ({ from, to })) };
  }
  if (outlier === undefined) return undefined;
  if (setting !== undefined && setting.failoverPriority.length > 0) return { kind: "priority", labels: setting.failoverPriority };
  return { kind: "failover", regions: Object.fromEntries((setting?.failover ?? []).map(({ from, to }) => [from, to])) };
}
