import type { DestinationRule, Subset, TrafficPolicy } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";

/** What a DestinationRule says for one port of one subset, after inheritance. */
export type PortPolicy = Partial<
  Pick<TrafficPolicy, "loadBalancer" | "connectionPool" | "outlierDetection" | "tls" | "tunnel" | "proxyProtocol" | "retryBudget">
>;

const FIELDS = ["loadBalancer", "connectionPool", "outlierDetection", "tls", "tunnel", "proxyProtocol", "retryBudget"] as const;

/**
 * Inheritance as the DestinationRule reference describes it: a subset's settings replace the host's block by block; settings of a port do
 * not inherit anything, so a block they leave out falls back to the defaults and not to the level above.
 */
export function portPolicy(rule: DestinationRule | undefined, port: number, subset?: Subset): PortPolicy {
  const host = applied({}, rule?.trafficPolicy, port);
  return subset === undefined ? host : applied(host, subset.trafficPolicy, port);
}

function applied(base: PortPolicy, policy: TrafficPolicy | undefined, port: number): PortPolicy {
  if (policy === undefined) return base;
  const merged: PortPolicy = { ...base };
  for (const field of FIELDS) if (policy[field] !== undefined) Object.assign(merged, { [field]: policy[field] });
  const own = policy.portLevelSettings.find((settings) => settings.port?.number === port);
  if (own === undefined) return merged;
  const { loadBalancer, connectionPool, outlierDetection, tls } = own;
  return { ...merged, loadBalancer, connectionPool, outlierDetection, tls };
}
