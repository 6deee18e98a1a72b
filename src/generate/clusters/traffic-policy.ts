import { create } from "@bufbuild/protobuf";
import {
  type DestinationRule,
  type LoadBalancerSettings,
  LoadBalancerSettingsSchema,
  LoadBalancerSettings_SimpleLB as SimpleLb,
  type Subset,
  type TrafficPolicy,
} from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Service } from "../../model/service.ts";

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

/**
 * Whether clients of a service are to stay at one endpoint each because the Service itself says so (`sessionAffinity: ClientIP`). Any
 * algorithm that a DestinationRule chooses for the port or subset goes before it. Clusters, routes and TCP proxies all ask here: a hash that
 * only some of them knew of would keep nobody anywhere.
 */
export const keepsClients = ({ clientAffinity }: Pick<Service, "clientAffinity">, said: PortPolicy): boolean =>
  clientAffinity === true && !choosesAlgorithm(said.loadBalancer);

/** What a DestinationRule says for one port of a service, and what the Service says where that chooses no algorithm: in the rule's own words. */
export function servicePolicy(service: Pick<Service, "clientAffinity">, said: PortPolicy): PortPolicy {
  if (!keepsClients(service, said)) return said;
  const byAddress = create(LoadBalancerSettingsSchema, {
    lbPolicy: { case: "consistentHash", value: { hashKey: { case: "useSourceIp", value: true } } },
  });
  return { ...said, loadBalancer: { ...byAddress, ...said.loadBalancer, lbPolicy: byAddress.lbPolicy } };
}

/** Places and warm-up may be spoken of without choosing an algorithm; UNSPECIFIED is none. */
const choosesAlgorithm = (settings: LoadBalancerSettings | undefined): boolean =>
  settings?.lbPolicy.case === "consistentHash" ||
  (settings?.lbPolicy.case === "simple" && settings.lbPolicy.value !== SimpleLb.UNSPECIFIED);

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
