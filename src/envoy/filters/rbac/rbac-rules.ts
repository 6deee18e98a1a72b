import { create } from "@bufbuild/protobuf";
import { type Policy, PolicySchema, type RBAC, RBAC_Action, RBACSchema } from "../../../gen/envoy/config/rbac/v3/rbac_pb.js";
import { NO_PERMISSION, operationPermission } from "./permissions.ts";
import { NO_PRINCIPAL, sourcePrincipal } from "./principals.ts";
import type { AttributeMatch, NamedRule, PermissionAttribute, PrincipalAttribute, RbacAction, RbacLayer, RuleInput } from "./rbac-input.ts";

/** The rules of an RBAC filter, by name. */
export function rbacRules(rules: readonly NamedRule[], action: RbacAction, layer: RbacLayer): RBAC {
  const policies = rules.flatMap(({ name, rule }): [string, Policy][] => {
    const policy = policyOf(rule, action, layer);
    return policy === undefined ? [] : [[name, policy]];
  });
  return create(RBACSchema, { action: RBAC_Action[action], policies: Object.fromEntries(policies) });
}

/**
 * Connections have no HTTP attributes. As Istio documents for TCP: a rule that allows by one is dropped, since nothing proves it holds;
 * in other rules the demand is left out, which makes them apply to more. Either way less is let in, never more.
 */
function policyOf(rule: NamedRule["rule"], action: RbacAction, layer: RbacLayer): Policy | undefined {
  if (rule === "never") return create(PolicySchema, { permissions: [NO_PERMISSION], principals: [NO_PRINCIPAL] });
  if (layer === "network" && action === "ALLOW" && usesHttp(rule)) return undefined;
  const known = <A extends PermissionAttribute | PrincipalAttribute>(matches: readonly AttributeMatch<A>[]) =>
    layer === "http" ? matches : matches.filter(({ attribute }) => !isHttp(attribute));
  return create(PolicySchema, {
    permissions: rule.operations.map((matches) => operationPermission(known(matches))),
    principals: rule.sources.map((matches) => sourcePrincipal(known(matches))),
  });
}

const usesHttp = ({ operations, sources }: RuleInput): boolean =>
  [...operations.flat(), ...sources.flat()].some(({ attribute }) => isHttp(attribute));

/** Attributes that only requests have. */
const HTTP_ATTRIBUTES: ReadonlySet<string> = new Set<(PermissionAttribute | PrincipalAttribute)["kind"]>([
  "host",
  "method",
  "path",
  "header",
  "requestPrincipal",
  "claim",
]);

const isHttp = ({ kind }: PermissionAttribute | PrincipalAttribute): boolean => HTTP_ATTRIBUTES.has(kind);
