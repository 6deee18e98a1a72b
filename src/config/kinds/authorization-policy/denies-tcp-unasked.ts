import type { Rule } from "../../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import { TCP_OPERATION, TCP_SOURCE } from "./attributes.ts";

/**
 * Whether a DENY rule takes TCP traffic by accident: on TCP its HTTP attributes are left out, as Istio documents, and what is left says nothing
 * about what is denied. Where a rule says by HTTP attributes what must not be done, who does it is no answer to that.
 */
export function deniesTcpUnasked(rule: Rule): boolean {
  const sources = rule.from.map((from) => from.source);
  const operations = rule.to.map((to) => to.operation);
  const isHttpKey = (key: string): boolean => key.startsWith("request.");
  if (rule.when.some((one) => !isHttpKey(one.key))) return false;
  if (operations.length > 0) return !operations.every((one) => sets(one, TCP_OPERATION));
  if (sources.length > 0) return !sources.every((one) => sets(one, TCP_SOURCE));
  return rule.when.length > 0;
}

function sets<K extends string>(lists: Readonly<Record<K, readonly string[]>> | undefined, names: readonly K[]): boolean {
  return lists !== undefined && names.some((name) => lists[name].length > 0);
}
