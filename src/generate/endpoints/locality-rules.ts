import type { MeshConfig } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type {
  LoadBalancerSettings,
  LocalityLoadBalancerSetting,
  OutlierDetection,
  ZoneAwareLoadBalancerSetting,
} from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Service } from "../../model/service.ts";
import type { LocalityRules } from "./assignment-key.ts";

export interface LocalityRulesQuery {
  readonly loadBalancer: LoadBalancerSettings | undefined;
  readonly outlier: OutlierDetection | undefined;
  readonly mesh: Pick<MeshConfig, "localityLbSetting" | "zoneAwareLbSetting"> | undefined;
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
  if (loadBalancer?.zoneAwareLbSetting !== undefined) return zoneAware(loadBalancer.zoneAwareLbSetting);
  if (loadBalancer?.localityLbSetting !== undefined) return byLocality(loadBalancer.localityLbSetting, outlier);
  if (distribution !== "any") return { kind: "priority", labels: DISTRIBUTION[distribution], regions: undefined };
  if (mesh?.zoneAwareLbSetting !== undefined) return zoneAware(mesh.zoneAwareLbSetting);
  return mesh?.localityLbSetting === undefined ? undefined : byLocality(mesh.localityLbSetting, outlier);
}

function byLocality(setting: LocalityLoadBalancerSetting, outlier: OutlierDetection | undefined): LocalityRules | undefined {
  if (setting.enabled === false) return undefined;
  if (setting.distribute.length > 0) return { kind: "distribute", rules: setting.distribute.map(({ from, to }) => ({ from, to })) };
  if (outlier === undefined) return undefined;
  const regions = regionsOf(setting.failover);
  if (setting.failoverPriority.length === 0) return { kind: "failover", regions };
  return { kind: "priority", labels: setting.failoverPriority, regions: setting.failover.length === 0 ? undefined : regions };
}

/** Zones are Envoy's choice; said to be disabled, even that is switched off. */
const zoneAware = ({ enabled, failoverPriority, failover, minClusterSize }: ZoneAwareLoadBalancerSetting): LocalityRules => ({
  kind: "zoneAware",
  enabled: enabled !== false,
  labels: failoverPriority,
  regions: regionsOf(failover),
  // Beyond what numbers hold, one size is as out of reach as another.
  minClusterSize: minClusterSize === undefined ? undefined : Math.min(Number(minClusterSize), Number.MAX_SAFE_INTEGER),
});

const regionsOf = (failover: readonly { readonly from: string; readonly to: string }[]): Readonly<Record<string, string>> =>
  Object.fromEntries(failover.toReversed().map(({ from, to }) => [from, to]));
