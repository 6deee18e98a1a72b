import type { ConfigObject } from "../../config/object.ts";
import { PolicyFilters } from "../../envoy/filters/policy-filters.ts";
import type { AuthorizationPolicy } from "../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import type { RequestAuthentication } from "../../gen/istio/security/v1beta1/request_authentication_pb.js";
import type { GenerateContext } from "../context.ts";
import { jwtRulesOf } from "./authentication.ts";
import { authorizationOf } from "./authorization.ts";
import type { KeyLocation } from "./key-location.ts";
import { keyServers } from "./key-locations.ts";
import type { PolicyKeys } from "./policy-choice.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "lookups" | "registry" | "settings">;

/** What decides the filters of policies: which policies, and on which sort of proxy. Labels and namespaces do not come in. */
export interface PolicyFiltersKey extends PolicyKeys {
  /** Gateways choose the route again once the claims of a token are known. */
  readonly gateway: boolean;
}

/** The filters of a set of policies, made once for all workloads that the same policies apply to. Undefined where there are none. */
export function definePolicyFilters(ctx: Context): (key: PolicyFiltersKey) => PolicyFilters | undefined {
  const objects = <S>(keys: readonly string[]): readonly ConfigObject<S>[] =>
    keys.map((key) => ctx.inputs.objects.get(key) as ConfigObject<S> | undefined).filter((object) => object !== undefined);
  const filters = ctx.engine.query<PolicyFiltersKey, PolicyFilters>({
    name: "policyFilters",
    id: ({ authentication, authorization, gateway }) => JSON.stringify([authentication, authorization, gateway]),
    same: (a, b) => a.id === b.id,
    compute: ({ authentication, authorization, gateway }) => {
      const rules = jwtRulesOf(objects<RequestAuthentication>(authentication), authenticationContext(ctx));
      return new PolicyFilters({
        jwt: rules.length === 0 ? undefined : { rules, clearRouteCache: gateway },
        ...authorizationOf(objects<AuthorizationPolicy>(authorization), authorizationContext(ctx)),
      });
    },
  });
  return (key) => (key.authentication.length + key.authorization.length === 0 ? undefined : filters(key));
}

const authenticationContext = (ctx: Context) => ({
  ...keyServers(ctx),
  fetchedKeys: ({ id }: KeyLocation) => ctx.inputs.keySets.get(id),
});

/** What AuthorizationPolicies are read with. Call inside a query. */
export function authorizationContext({ inputs, registry, settings }: Context) {
  const mesh = inputs.mesh.get("mesh");
  if (mesh === undefined) throw new Error("there is no MeshConfig");
  return {
    mesh,
    trustDomains: [mesh.trustDomain, ...mesh.trustDomainAliases].filter((domain) => domain !== ""),
    servicesByHost: (host: string) => registry.servicesByHost(host),
    severalAuthorizers: settings.severalAuthorizers,
  };
}
