import type { Service } from "../model/service.ts";

const DISTRIBUTION: ReadonlyMap<string, Service["trafficDistribution"]> = new Map([
  ["PreferClose", "preferClose"],
  ["PreferSameZone", "preferClose"],
  ["PreferSameNode", "preferSameNode"],
]);

/** Which endpoints clients prefer: the annotation of the mesh, else what the Service says in its own field. */
export function trafficDistributionOf(annotations: Readonly<Record<string, string>>, field = ""): Service["trafficDistribution"] {
  return DISTRIBUTION.get(annotations["networking.istio.io/traffic-distribution"] ?? field) ?? "any";
}
