import { msOfDuration } from "../../../base/duration.ts";
import type { HashPolicyInput } from "../../../envoy/route/route-input.ts";
import type {
  LoadBalancerSettings_ConsistentHashLB as ConsistentHash,
  LoadBalancerSettings,
} from "../../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Service } from "../../../model/service.ts";
import { keepsClients, portPolicy } from "../../clusters/traffic-policy.ts";
import type { ResolvedDestinationRule } from "../../context.ts";

/** Where requests go to. */
export interface HashedDestination {
  readonly service: Pick<Service, "clientAffinity">;
  readonly subset: string;
  readonly port: number;
}

/**
 * The hash policy of a destination: the client's address where the Service asks for that, else what a DestinationRule says. The most specific
 * hash it names counts. A level that balances otherwise does not hide the hash of the level above, as in Istio; a cluster that does not hash
 * ignores it.
 */
export function hashPolicyOf(rule: ResolvedDestinationRule | undefined, destination: HashedDestination): HashPolicyInput | undefined {
  const named = destination.subset === "" ? undefined : rule?.spec.subsets.find(({ name }) => name === destination.subset);
  if (keepsClients(destination.service, portPolicy(rule?.spec, destination.port, named))) return { kind: "sourceIp" };
  const subset = named?.trafficPolicy;
  const top = rule?.spec.trafficPolicy;
  const atPort = (policy: typeof top): LoadBalancerSettings | undefined =>
    policy?.portLevelSettings.find(({ port }) => port?.number === destination.port)?.loadBalancer;
  const hash = hashOf(atPort(subset)) ?? hashOf(subset?.loadBalancer) ?? hashOf(atPort(top)) ?? hashOf(top?.loadBalancer);
  return hash === undefined ? undefined : translate(hash);
}

const hashOf = (settings: LoadBalancerSettings | undefined): ConsistentHash | undefined =>
  settings?.lbPolicy.case === "consistentHash" ? settings.lbPolicy.value : undefined;

function translate({ hashKey }: ConsistentHash): HashPolicyInput | undefined {
  switch (hashKey.case) {
    // Envoy refuses a hash of what has no name; it is nothing to hash.
    case "httpHeaderName":
      return hashKey.value === "" ? undefined : { kind: "header", name: hashKey.value };
    case "httpQueryParameterName":
      return hashKey.value === "" ? undefined : { kind: "queryParam", name: hashKey.value };
    case "useSourceIp":
      return hashKey.value ? { kind: "sourceIp" } : undefined;
    case "httpCookie": {
      const { name, path, ttl, attributes } = hashKey.value;
      return {
        kind: "cookie",
        name,
        path,
        ttlMs: ttl === undefined ? undefined : msOfDuration(ttl),
        attributes: attributes.filter((entry) => entry.name !== "").map((entry) => ({ name: entry.name, value: entry.value })),
      };
    }
    case undefined:
      return undefined;
  }
}
