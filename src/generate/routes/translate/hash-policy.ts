import { msOfDuration } from "../../../base/duration.ts";
import type { HashPolicyInput } from "../../../envoy/route/route-input.ts";
import type {
  LoadBalancerSettings_ConsistentHashLB as ConsistentHash,
  LoadBalancerSettings,
} from "../../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { ResolvedDestinationRule } from "../../context.ts";

/**
 * The hash policy a DestinationRule gives a destination: the most specific hash it names counts. A level that balances otherwise does not
 * hide the hash of the level above, as in Istio; a cluster that does not hash ignores it.
 */
export function hashPolicyOf(
  rule: ResolvedDestinationRule | undefined,
  destination: { readonly subset: string; readonly port: number },
): HashPolicyInput | undefined {
  const subset = destination.subset === "" ? undefined : rule?.spec.subsets.find(({ name }) => name === destination.subset)?.trafficPolicy;
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
    case "httpHeaderName":
      return { kind: "header", name: hashKey.value };
    case "httpQueryParameterName":
      return { kind: "queryParam", name: hashKey.value };
    case "useSourceIp":
      return hashKey.value ? { kind: "sourceIp" } : undefined;
    case "httpCookie": {
      const { name, path, ttl, attributes } = hashKey.value;
      return {
        kind: "cookie",
        name,
        path,
        ttlMs: ttl === undefined ? undefined : msOfDuration(ttl),
        attributes: attributes.map((entry) => ({ name: entry.name, value: entry.value })),
      };
    }
    case undefined:
      return undefined;
  }
}
