import { quote } from "../../../base/quote.ts";
import {
  AuthorizationPolicy_Action as Action,
  type AuthorizationPolicy,
  AuthorizationPolicySchema,
  type Condition,
  type Rule,
} from "../../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import { type Place, placeOf } from "../../checks/place.ts";
import { checkTarget } from "../../checks/target.ts";
import type { KindDef } from "../../kind-def.ts";
import type { ConfigObject } from "../../object.ts";
import { DRY_RUN, istioKind } from "../istio-kind.ts";
import { TARGET_RULES } from "../target-rules.ts";
import { checkAttribute } from "./check-attribute.ts";
import { checkCustomRule } from "./check-custom-rule.ts";
import { checkOperation, checkSource } from "./check-source.ts";
import { deniesTcpUnasked } from "./denies-tcp-unasked.ts";

/** Texts that Go reads as a boolean. */
const BOOLEANS: ReadonlySet<string> = new Set(["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"]);
const ACCOUNT_RULES = { maxItems: 16 } as const;

const base = istioKind({
  kind: "AuthorizationPolicy",
  group: "security.istio.io",
  versions: ["v1", "v1beta1"],
  plural: "authorizationpolicies",
  singular: "authorizationpolicy",
  shortNames: ["ap"],
  columns: { Action: ".spec.action", Age: ".metadata.creationTimestamp" },
  schema: AuthorizationPolicySchema,
  rules: {
    ...TARGET_RULES,
    rules: { maxItems: 512 },
    "rules[].from": { maxItems: 512 },
    "rules[].from[].source.serviceAccounts": ACCOUNT_RULES,
    "rules[].from[].source.serviceAccounts[]": { maxLength: 320 },
    "rules[].from[].source.notServiceAccounts": ACCOUNT_RULES,
    "rules[].from[].source.notServiceAccounts[]": { maxLength: 320 },
  },
  hasDryRun: true,
  check: checkAuthorizationPolicy,
});

/** Who may call what. */
export const authorizationPolicy: KindDef<AuthorizationPolicy> = {
  ...base,
  validate(object, report) {
    base.validate(object, report);
    checkDryRun(object, placeOf(report, ["metadata", "annotations", DRY_RUN]));
  },
};

function checkAuthorizationPolicy(spec: AuthorizationPolicy, place: Place): void {
  checkTarget(spec, place);
  checkAction(spec, place);
  for (const [index, rule] of spec.rules.entries()) checkRule(rule, spec.action, place.in("rules", index));
}

function checkAction(spec: AuthorizationPolicy, place: Place): void {
  const provider = spec.actionDetail.case === "provider" ? spec.actionDetail.value : undefined;
  if (spec.action === Action.CUSTOM) {
    if ((provider?.name ?? "") === "") place.in("provider", "name").fault("field.required", "action CUSTOM needs the name of a provider");
  } else if (provider !== undefined) place.in("provider").fault("field.conflict", "only action CUSTOM takes a provider");
  const needsRules = spec.action === Action.CUSTOM || spec.action === Action.DENY;
  if (needsRules && spec.rules.length === 0) {
    place
      .in("rules")
      .fault(
        "field.required",
        `action ${Action[spec.action]} without rules never applies; add an empty rule {} to apply it to every request`,
      );
  }
}

function checkRule(rule: Rule, action: Action, place: Place): void {
  for (const [index, from] of rule.from.entries()) checkSource(from.source, place.in("from", index, "source"));
  for (const [index, to] of rule.to.entries()) checkOperation(to.operation, place.in("to", index, "operation"));
  for (const [index, condition] of rule.when.entries()) checkCondition(condition, place.in("when", index));
  if (action === Action.CUSTOM) checkCustomRule(rule, place);
  if (action === Action.DENY && deniesTcpUnasked(rule)) {
    place.fault(
      "field.ineffective",
      "says by HTTP attributes only what is denied; TCP traffic has none and is denied whatever it does, so say which ports are meant",
    );
  }
}

function checkCondition(condition: Condition, place: Place): void {
  if (condition.key === "") {
    place.in("key").fault("field.required", "must be set");
    return;
  }
  if (condition.values.length === 0 && condition.notValues.length === 0) place.fault("field.required", "give values or notValues");
  checkAttribute(condition, place);
}

/** Dry run counts what a policy would do; Envoy has that for allowing and denying only. */
function checkDryRun(object: ConfigObject<AuthorizationPolicy>, place: Place): void {
  const text = object.annotations[DRY_RUN];
  if (text === undefined) return;
  if (!BOOLEANS.has(text)) place.fault("field.invalid", `${quote(text)} is neither true nor false`);
  const { action } = object.spec;
  if (action !== Action.ALLOW && action !== Action.DENY) place.fault("field.conflict", `action ${Action[action]} has no dry run`);
}
