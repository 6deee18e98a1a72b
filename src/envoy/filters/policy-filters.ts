import { toBinary } from "@bufbuild/protobuf";
import { contentHash } from "../../base/hash.ts";
import { type Filter, FilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { EXT_AUTHZ_SHADOW_PREFIX, httpExtAuthz, networkExtAuthz } from "./ext-authz/ext-authz-filter.ts";
import type { ExtAuthzInput } from "./ext-authz/ext-authz-input.ts";
import { type JwtInput, jwtAuthn } from "./jwt/jwt-authn.ts";
import { httpRbac, networkRbac } from "./rbac/rbac-filter.ts";
import type { NamedRule, RbacInput } from "./rbac/rbac-input.ts";

/** Rules that leave the decision to an external authorizer. */
export interface CustomRules {
  /** What the names of the rules begin with, and those of no other authorizer's. */
  readonly prefix: string;
  readonly rules: readonly NamedRule[];
  /** Undefined: there is no such authorizer, or its settings are wrong. What should have been asked about is refused. */
  readonly authorizer: ExtAuthzInput | undefined;
}

/** Everything the policies of a workload say. */
export interface PolicyFiltersInput {
  readonly jwt: JwtInput | undefined;
  readonly custom: readonly CustomRules[];
  readonly rbac: readonly RbacInput[];
}

/**
 * The filters that the policies of a workload ask for. Made once and put into every chain that takes its traffic; where inputs are compared
 * or hashed, a hash of the content stands for them (`toJSON`), so that a large policy does not count once per chain.
 */
export class PolicyFilters {
  readonly id: string;
  /** Asks external authorizers (CUSTOM). It comes before authentication, as in Istio: an authorizer may be what brings a token. */
  readonly custom: readonly HttpFilter[];
  readonly authentication: readonly HttpFilter[];
  /** What denies, then what allows. */
  readonly authorization: readonly HttpFilter[];
  /** The same on connections that are not HTTP: what asks external authorizers, and what denies and allows. */
  readonly network: { readonly custom: readonly Filter[]; readonly authorization: readonly Filter[] };

  constructor(input: PolicyFiltersInput) {
    this.authentication = input.jwt === undefined ? [] : [jwtAuthn(input.jwt)];
    this.custom = input.custom.flatMap(httpCustom);
    this.authorization = input.rbac.map(httpRbac);
    this.network = { custom: input.custom.flatMap(networkCustom), authorization: input.rbac.map(networkRbac) };
    const parts = [
      ...[...this.custom, ...this.authentication, ...this.authorization].map((filter) => toBinary(HttpFilterSchema, filter)),
      ...[...this.network.custom, ...this.network.authorization].map((filter) => toBinary(FilterSchema, filter)),
    ];
    this.id = contentHash(parts.map((part) => contentHash(part)).join());
  }

  toJSON(): string {
    return this.id;
  }
}

/** A rule of an authorizer that cannot be asked denies, and says why by its name. */
const UNASKABLE = "-deny-due-to-bad-CUSTOM-action";

const denied = (rules: readonly NamedRule[]): RbacInput => ({
  action: "DENY",
  rules: rules.map(({ name, rule }) => ({ name: `${name}${UNASKABLE}`, rule })),
});

/** Rules are tried in shadow; the name of the one that matched, left in metadata, makes the next filter ask. */
const marked = (rules: readonly NamedRule[]): RbacInput => ({ action: "DENY", shadowRules: rules, shadowPrefix: EXT_AUTHZ_SHADOW_PREFIX });

function httpCustom({ prefix, rules, authorizer }: CustomRules): readonly HttpFilter[] {
  return authorizer === undefined ? [httpRbac(denied(rules))] : [httpRbac(marked(rules)), httpExtAuthz(authorizer, prefix)];
}

/** An authorizer that speaks HTTP is asked about requests only, as in Istio. */
function networkCustom({ prefix, rules, authorizer }: CustomRules): readonly Filter[] {
  if (authorizer === undefined) return [networkRbac(denied(rules))];
  return authorizer.protocol === "http" ? [] : [networkRbac(marked(rules)), networkExtAuthz(authorizer, prefix)];
}
