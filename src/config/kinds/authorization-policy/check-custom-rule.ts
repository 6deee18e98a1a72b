import { quote } from "../../../base/quote.ts";
import type { Rule, Source } from "../../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import type { Place } from "../../checks/place.ts";

/** Lists that say who calls by an identity of the peer or of a token. */
const IDENTITY = [
  "principals",
  "notPrincipals",
  "requestPrincipals",
  "notRequestPrincipals",
  "namespaces",
  "notNamespaces",
  "serviceAccounts",
  "notServiceAccounts",
  "trustDomains",
  "notTrustDomains",
] as const satisfies readonly (keyof Source)[];

const IDENTITY_KEYS: ReadonlySet<string> = new Set(["source.namespace", "source.principal", "source.serviceAccount", "source.trustDomain"]);

/** An external authorizer is asked before identities are looked at, so which requests it is asked about cannot depend on them. */
export function checkCustomRule(rule: Rule, place: Place): void {
  for (const [index, { source }] of rule.from.entries()) {
    for (const name of IDENTITY)
      if ((source?.[name].length ?? 0) > 0)
        place.in("from", index, "source", name).fault("field.conflict", "action CUSTOM cannot depend on identities");
  }
  for (const [index, { key }] of rule.when.entries())
    if (IDENTITY_KEYS.has(key) || key.startsWith("request.auth."))
      place.in("when", index, "key").fault("field.conflict", `action CUSTOM cannot depend on identities such as ${quote(key)}`);
}
