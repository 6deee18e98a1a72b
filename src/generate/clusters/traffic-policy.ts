import type { DestinationRule, Subset, TrafficPolicy } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";

/** What a DestinationRule says for one port of one subset, after inheritance. */
export type PortPolicy = Partial<
  Pick<TrafficPolicy, "loadBalancer" | "connectionPool" | "outlierDetection" | "tls" | "tunnel" | "proxyProtocol" | "retryBudget">
>;

/** Blocks that settings of a port have. */
const PORT_FIELDS = ["loadBalancer", "connectionPool", "outlierDetection", "tls"] as const;
/** Blocks that are said for all ports at once. */
const SHARED_FIELDS = ["tunnel", "proxyProtocol", "retryBudget"] as const;

/**
 * Inheritance as the DestinationRule reference describes it: a subset's settings replace the host's block by block; settings of a port do
 * not inherit anything from the level they stand on, so a block they leave out falls back to the defaults.
 */
export function portPolicy(rule: DestinationRule | undefined, port: number, subset?: Subset): PortPolicy {
  const host = levelAt(rule?.trafficPolicy, port).policy;
  if (subset?.trafficPolicy === undefined) return host;
  const { policy, ofPort } = levelAt(subset.trafficPolicy, port);
  const merged: PortPolicy = { ...host };
  for (const field of PORT_FIELDS) if (ofPort || policy[field] !== undefined) Object.assign(merged, { [field]: policy[field] });
  for (const field of SHARED_FIELDS) if (policy[field] !== undefined) Object.assign(merged, { [field]: policy[field] });
  return merged;
}

const NOTHING_SAID = { policy: Object.freeze({}), ofPort: false } as const;

/** What one level says for a port: the port's own settings if there are any, else the level's. */
function levelAt(policy: TrafficPolicy | undefined, port: number): { readonly policy: PortPolicy; readonly ofPort: boolean } {
  if (policy === undefined) return NOTHING_SAID;
  const own = policy.portLevelSettings.find((settings) => settings.port?.number === port);
  const fields: PortPolicy = {};
  if (own !== undefined) for (const field of PORT_FIELDS) Object.assign(fields, own[field] !== undefined && { [field]: own[field] });
  else
    for (const field of [...PORT_FIELDS, ...SHARED_FIELDS])
      Object.assign(fields, policy[field] !== undefined && { [field]: policy[field] });
  return { policy: fields, ofPort: own !== undefined };
}
