import type { Rule } from "../../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import { HTTP_OPERATION, HTTP_SOURCE, TCP_OPERATION, TCP_SOURCE } from "./attributes.ts";

/**
 * Whether a DENY rule takes all TCP traffic by accident: on TCP its HTTP attributes are left out, as Istio documents,
 * and if nothing else limits it, it matches everything.
 */
export function deniesAllTcp(rule: Rule): boolean {
  const sources = rule.from.map((from) => from.source);
  const operations = rule.to.map((to) => to.operation);
  const isHttpKey = (key: string): boolean => key.startsWith("request.");
  const usesHttp =
    sources.some((one) => sets(one, HTTP_SOURCE)) ||
    operations.some((one) => sets(one, HTTP_OPERATION)) ||
    rule.when.some((one) => isHttpKey(one.key));
  const limited =
    (sources.length > 0 && sources.every((one) => sets(one, TCP_SOURCE))) ||
    (operations.length > 0 && operations.every((one) => sets(one, TCP_OPERATION))) ||
    rule.when.some((one) => !isHttpKey(one.key));
  return usesHttp && !limited;
}

function sets<K extends string>(lists: Readonly<Record<K, readonly string[]>> | undefined, names: readonly K[]): boolean {
  return lists !== undefined && names.some((name) => lists[name].length > 0);
}
