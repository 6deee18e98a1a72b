import { quote } from "../../base/quote.ts";
import type {
  LocalityLoadBalancerSetting,
  LocalityLoadBalancerSetting_Distribute,
  OutlierDetection,
  ZoneAwareLoadBalancerSetting,
} from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Place } from "./place.ts";

const TOPOLOGY_LABELS: readonly string[] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone"];
const MOST_PARTS = 3;

interface Failover {
  readonly from: string;
  readonly to: string;
}

/** Which localities traffic goes to, of a DestinationRule or the mesh. */
export function checkLocalityLb(lb: LocalityLoadBalancerSetting, outlier: OutlierDetection | undefined, place: Place): void {
  if (lb.distribute.length > 0 && lb.failover.length > 0) place.fault("field.conflict", "distribute and failover exclude each other");
  for (const [index, one] of lb.distribute.entries()) checkDistribute(one, place.in("distribute", index));
  checkLocalities(
    lb.distribute.map((one) => one.from),
    place.in("distribute"),
  );
  for (const [index, one] of lb.failover.entries()) checkFailover(one, place.in("failover", index));
  for (const [index, label] of lb.failoverPriority.entries()) {
    if (lb.failover.length > 0 && TOPOLOGY_LABELS.includes(label)) {
      place.in("failoverPriority", index).fault("field.conflict", `failover and the topology label ${quote(label)} exclude each other`);
    }
  }
  warnWithoutOutlier(lb, outlier, place);
}

/** Zone-aware balancing: only the order of regions is left to say, zones follow by themselves. */
export function checkZoneAwareLb(lb: ZoneAwareLoadBalancerSetting, outlier: OutlierDetection | undefined, place: Place): void {
  for (const [index, one] of lb.failover.entries()) checkFailover(one, place.in("failover", index));
  for (const [index, label] of lb.failoverPriority.entries()) {
    if (TOPOLOGY_LABELS.includes(label)) {
      place
        .in("failoverPriority", index)
        .fault("field.invalid", `zone-aware balancing orders regions and zones itself; leave out ${quote(label)}`);
    }
  }
  if (lb.minClusterSize === 0n) place.in("minClusterSize").fault("field.range", "must be at least 1");
  warnWithoutOutlier(lb, outlier, place);
}

/** Localities as `region/zone/subzone`, each part of them or `*` at the end; none may contain another. */
export function checkLocalities(localities: readonly string[], place: Place): void {
  const taken: string[][] = [];
  for (const locality of localities) {
    const fault = localityFault(locality);
    if (fault !== undefined) {
      place.fault("field.invalid", fault);
      continue;
    }
    const parts = locality.split("/").filter((part) => part !== "*");
    if (taken.some((other) => startsWith(parts, other) || startsWith(other, parts)))
      place.fault("field.duplicate", `${quote(locality)} overlaps another locality`);
    taken.push(parts);
  }
}

function checkDistribute(distribute: LocalityLoadBalancerSetting_Distribute, place: Place): void {
  const weights = Object.values(distribute.to);
  if (weights.some((weight) => weight < 1 || weight > 100)) place.in("to").fault("field.range", "each weight must be from 1 to 100");
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total !== 100) place.in("to").fault("field.invalid", `the weights add up to ${total}, not to 100`);
  checkLocalities(Object.keys(distribute.to), place.in("to"));
}

function checkFailover(failover: Failover, place: Place): void {
  if (failover.from === failover.to) place.fault("field.invalid", "failover must lead to another region");
  if (failover.from.includes("/") || failover.to.includes("/")) place.fault("field.invalid", "failover names regions only");
  if (failover.from.includes("*") || failover.to.includes("*")) place.fault("field.invalid", "failover takes no wildcards");
}

function warnWithoutOutlier(
  lb: { readonly failover: readonly Failover[]; readonly failoverPriority: readonly string[] },
  outlier: OutlierDetection | undefined,
  place: Place,
): void {
  const failsOver = lb.failover.length > 0 || lb.failoverPriority.length > 0;
  if (failsOver && outlier === undefined)
    place.fault("field.ineffective", "failover happens only where outlierDetection finds endpoints that fail");
}

function localityFault(locality: string): string | undefined {
  const parts = locality.split("/");
  if (parts.slice(0, -1).some((part) => part.includes("*")) || (parts.at(-1)?.includes("*") === true && parts.at(-1) !== "*")) {
    return `${quote(locality)} may hold one *, as its last part`;
  }
  if (parts.length > MOST_PARTS || parts.some((part) => part === "")) return `${quote(locality)} is not region/zone/subzone`;
  return undefined;
}

const startsWith = (parts: readonly string[], start: readonly string[]): boolean => start.every((part, index) => parts[index] === part);
