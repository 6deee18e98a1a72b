import type { ConfigObject } from "../../config/object.ts";
import type { CustomRules } from "../../envoy/filters/policy-filters.ts";
import type { NamedRule, RbacAction, RbacInput } from "../../envoy/filters/rbac/rbac-input.ts";
import {
  AuthorizationPolicy_Action as Action,
  type AuthorizationPolicy,
} from "../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import { ruleInput } from "./authorization-rules.ts";
import { type AuthorizerContext, externalAuthorizer } from "./external-authorizer.ts";

export type AuthorizationObject = Pick<ConfigObject<AuthorizationPolicy>, "namespace" | "name" | "annotations" | "spec">;

export interface AuthorizationContext extends AuthorizerContext {
  /** The mesh's trust domain and its aliases. */
  readonly trustDomains: readonly string[];
  readonly severalAuthorizers: boolean;
}

/** What all AuthorizationPolicies of a workload come to. */
export interface Authorization {
  readonly custom: readonly CustomRules[];
  /** What is only noted, then what denies, then what allows: requests that are refused are noted too. */
  readonly rbac: readonly RbacInput[];
}

/** What the policies that apply to a workload come to, in Istio's order of actions: CUSTOM is asked first, AUDIT notes, then DENY, then ALLOW decides. */
export function authorizationOf(policies: readonly AuthorizationObject[], context: AuthorizationContext): Authorization {
  const of = (action: Action): readonly AuthorizationObject[] => policies.filter(({ spec }) => spec.action === action);
  return {
    custom: customRules(of(Action.CUSTOM), context),
    rbac: [
      ...enforced(of(Action.AUDIT), "LOG", context),
      ...withDryRun(of(Action.DENY), "DENY", context),
      ...withDryRun(of(Action.ALLOW), "ALLOW", context),
    ],
  };
}

const DRY_RUN = "istio.io/dry-run";
const TRUE: ReadonlySet<string> = new Set(["1", "t", "T", "TRUE", "true", "True"]);
const isDryRun = ({ annotations }: AuthorizationObject): boolean => TRUE.has(annotations[DRY_RUN] ?? "");

/** What results of rules in shadow begin with. Where there are none Istio says `allow` for every action, and so do we. */
const DRY_RUN_ALLOW = "istio_dry_run_allow_";
const DRY_RUN_DENY = "istio_dry_run_deny_";

function withDryRun(policies: readonly AuthorizationObject[], action: RbacAction, context: AuthorizationContext): readonly RbacInput[] {
  const { tried = [], real = [] } = Object.groupBy(policies, (policy) => (isDryRun(policy) ? "tried" : "real"));
  if (tried.length === 0) return enforced(real, action, context);
  return [
    {
      action,
      ...(real.length > 0 && { rules: namedRules(real, context) }),
      shadowRules: namedRules(tried, context),
      shadowPrefix: action === "DENY" ? DRY_RUN_DENY : DRY_RUN_ALLOW,
    },
  ];
}

const enforced = (policies: readonly AuthorizationObject[], action: RbacAction, context: AuthorizationContext): readonly RbacInput[] =>
  policies.length === 0 ? [] : [{ action, rules: namedRules(policies, context), shadowPrefix: DRY_RUN_ALLOW }];

/** Rules under names that tell the policy. A policy without rules matches nothing. */
const namedRules = (policies: readonly AuthorizationObject[], context: AuthorizationContext): readonly NamedRule[] =>
  policies.flatMap(({ namespace, name, spec }): readonly NamedRule[] => {
    const nameOf = (index: number): string => `ns[${namespace}]-policy[${name}]-rule[${index}]`;
    if (spec.rules.length === 0) return [{ name: nameOf(0), rule: "never" }];
    const ruleContext = { namespace, trustDomains: context.trustDomains };
    return spec.rules.map((rule, index) => ({ name: nameOf(index), rule: ruleInput(rule, ruleContext) }));
  });

const providerOf = ({ spec }: AuthorizationObject): string => (spec.actionDetail.case === "provider" ? spec.actionDetail.value.name : "");

/** Rules by the authorizer they name. Unless several are wanted, as in Istio, naming several leaves none that could be asked. */
function customRules(policies: readonly AuthorizationObject[], context: AuthorizationContext): readonly CustomRules[] {
  const byProvider = Map.groupBy(policies, providerOf);
  const several = byProvider.size > 1;
  const groups = [...byProvider]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([provider, list]): CustomRules => {
      const prefix = `istio-ext-authz-${provider}`;
      const rules = namedRules(list, context).map(({ name, rule }) => ({ name: `${prefix}-${name}`, rule }));
      // Names of providers may begin alike: beside one that goes on where this one ends, the prefix goes on to where the name ends.
      const beginsAnother = [...byProvider.keys()].some((other) => other !== provider && other.startsWith(provider));
      return { prefix: beginsAnother ? `${prefix}-ns[` : prefix, rules, authorizer: externalAuthorizer(provider, context) };
    });
  return several && !context.severalAuthorizers ? groups.map((group) => ({ ...group, authorizer: undefined })) : groups;
}
