import { create } from "@bufbuild/protobuf";
import { type Filter, FilterSchema } from "../../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { RBACSchema as HttpRbacSchema } from "../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { RBACSchema as NetworkRbacSchema } from "../../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.js";
import { anyOf } from "../../../wire/encode.ts";
import type { RbacInput, RbacLayer } from "./rbac-input.ts";
import { rbacRules } from "./rbac-rules.ts";

export const HTTP_RBAC = "envoy.filters.http.rbac";
export const NETWORK_RBAC = "envoy.filters.network.rbac";

/** Statistics of filters on connections. */
export const NETWORK_STAT_PREFIX = "tcp.";

/** Decides on requests. */
export function httpRbac(input: RbacInput): HttpFilter {
  const config = anyOf(HttpRbacSchema, create(HttpRbacSchema, fields(input, "http")));
  return create(HttpFilterSchema, { name: HTTP_RBAC, configType: { case: "typedConfig", value: config } });
}

/** Decides on connections. */
export function networkRbac(input: RbacInput): Filter {
  const config = anyOf(NetworkRbacSchema, create(NetworkRbacSchema, { ...fields(input, "network"), statPrefix: NETWORK_STAT_PREFIX }));
  return create(FilterSchema, { name: NETWORK_RBAC, configType: { case: "typedConfig", value: config } });
}

const fields = ({ action, rules, shadowRules, shadowPrefix = "" }: RbacInput, layer: RbacLayer) => ({
  ...(rules !== undefined && { rules: rbacRules(rules, action, layer) }),
  ...(shadowRules !== undefined && { shadowRules: rbacRules(shadowRules, action, layer) }),
  shadowRulesStatPrefix: shadowPrefix,
});
