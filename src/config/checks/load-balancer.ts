import { quote } from "../../base/quote.ts";
import type {
  LoadBalancerSettings,
  LoadBalancerSettings_ConsistentHashLB,
  LoadBalancerSettings_ConsistentHashLB_HTTPCookie,
  OutlierDetection,
  WarmupConfiguration,
} from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { durationFault, millisOf } from "./duration.ts";
import { lineFault, soughtHeaderFault } from "./header.ts";
import { checkLocalityLb, checkZoneAwareLb } from "./locality-weights.ts";
import { percentFault } from "./percent.ts";
import type { Place } from "./place.ts";

/** Largest table Envoy accepts. */
const MOST_MAGLEV_ENTRIES = 5_000_011n;

/** How requests are spread over endpoints. */
export function checkLoadBalancer(lb: LoadBalancerSettings, outlier: OutlierDetection | undefined, place: Place): void {
  if (lb.lbPolicy.case === "consistentHash") checkConsistentHash(lb.lbPolicy.value, place.in("consistentHash"));
  if (lb.localityLbSetting !== undefined) checkLocalityLb(lb.localityLbSetting, outlier, place.in("localityLbSetting"));
  if (lb.zoneAwareLbSetting !== undefined) checkZoneAwareLb(lb.zoneAwareLbSetting, outlier, place.in("zoneAwareLbSetting"));
  if (lb.localityLbSetting !== undefined && lb.zoneAwareLbSetting !== undefined) {
    place.in("zoneAwareLbSetting").fault("field.conflict", "cannot be combined with localityLbSetting: Envoy takes one of them");
  }
  if (lb.warmupDurationSecs !== undefined) place.in("warmupDurationSecs").check("field.range", durationFault(lb.warmupDurationSecs));
  if (lb.warmup !== undefined) checkWarmup(lb.warmup, place.in("warmup"));
}

function checkConsistentHash(hash: LoadBalancerSettings_ConsistentHashLB, place: Place): void {
  if (hash.hashKey.case === "httpCookie") checkCookie(hash.hashKey.value, place.in("httpCookie"));
  // An empty name is none: then nothing is hashed.
  if (hash.hashKey.case === "httpHeaderName" && hash.hashKey.value !== "")
    place.in("httpHeaderName").check("field.invalid", soughtHeaderFault(hash.hashKey.value));
  if (hash.minimumRingSize !== 0n && hash.hashAlgorithm.case !== undefined)
    place.in("minimumRingSize").fault("field.conflict", `cannot be combined with ${hash.hashAlgorithm.case}: only one of them can count`);
  else if (hash.minimumRingSize !== 0n) place.in("minimumRingSize").fault("field.deprecated", "write ringHash: {minimumRingSize} instead");
  if (hash.hashAlgorithm.case !== "maglev") return;
  const size = hash.hashAlgorithm.value.tableSize;
  const at = place.in("maglev", "tableSize");
  if (size > MOST_MAGLEV_ENTRIES) at.fault("field.range", `must be at most ${MOST_MAGLEV_ENTRIES}`);
  else if (size !== 0n && !isPrime(Number(size))) at.fault("field.invalid", `${size} is not a prime number`);
}

function checkCookie(cookie: LoadBalancerSettings_ConsistentHashLB_HTTPCookie, place: Place): void {
  if (cookie.name === "") place.in("name").fault("field.required", "must be set");
  if (cookie.ttl !== undefined && millisOf(cookie.ttl) < 0) place.in("ttl").fault("field.range", "must not be negative");
  const names = new Set<string>();
  for (const [index, { name }] of cookie.attributes.entries()) {
    const at = place.in("attributes", index, "name");
    if (name === "") at.fault("field.required", "must be set");
    else if (names.has(name)) at.fault("field.duplicate", `${quote(name)} is listed twice`);
    else at.check("field.invalid", lineFault(name));
    names.add(name);
  }
}

function checkWarmup(warmup: WarmupConfiguration, place: Place): void {
  if (warmup.duration === undefined) place.in("duration").fault("field.required", "must be set");
  else place.in("duration").check("field.range", durationFault(warmup.duration));
  if (warmup.minimumPercent !== undefined) place.in("minimumPercent").check("field.range", percentFault(warmup.minimumPercent));
  if (warmup.aggression !== undefined && !(warmup.aggression > 0)) place.in("aggression").fault("field.range", "must be greater than 0");
}

function isPrime(value: number): boolean {
  if (value < 2) return false;
  for (let factor = 2; factor * factor <= value; factor++) if (value % factor === 0) return false;
  return true;
}
