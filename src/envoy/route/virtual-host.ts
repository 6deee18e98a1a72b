import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type RouteMatchSchema,
  type RouteSchema,
  VirtualHost_TlsRequirementType,
  type VirtualHostSchema,
} from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { directResponseAction, redirectAction, routeAction } from "./action.ts";
import { filterOverrides } from "./filter-overrides.ts";
import { headerAdditions } from "./header-changes.ts";
import type { ActionInput, MatchInput, RouteInput, VirtualHostInput } from "./route-input.ts";
import { claimMatcher, headerMatcher, queryMatcher } from "./text-match.ts";

/** Builds a virtual host without name and domains, which are put to it by tables (`assembleRouteTable`): it may have others in another table. */
export function buildVirtualHost(input: VirtualHostInput): MessageInitShape<typeof VirtualHostSchema> {
  return {
    routes: input.routes.map(routeOf),
    includeRequestAttemptCount: input.includeAttemptCount,
    typedPerFilterConfig: filterOverrides({ cors: undefined, fault: undefined, ...input }),
    ...(input.requireTls && { requireTls: VirtualHost_TlsRequirementType.ALL }),
  };
}

type RouteInit = MessageInitShape<typeof RouteSchema>;

function routeOf(input: RouteInput): RouteInit {
  return {
    name: input.name,
    match: matchOf(input.match),
    action: actionOf(input.action),
    requestHeadersToAdd: headerAdditions(input.request),
    requestHeadersToRemove: [...input.request.remove],
    responseHeadersToAdd: headerAdditions(input.response),
    responseHeadersToRemove: [...input.response.remove],
    typedPerFilterConfig: filterOverrides(input),
    statPrefix: input.statPrefix,
    ...(input.operation !== "" && { decorator: { operation: input.operation } }),
    ...(input.origin !== undefined && { metadata: { filterMetadata: { istio: { config: input.origin } } } }),
  };
}

function actionOf(action: ActionInput): NonNullable<RouteInit["action"]> {
  switch (action.kind) {
    case "route":
      return { case: "route", value: routeAction(action) };
    case "redirect":
      return { case: "redirect", value: redirectAction(action) };
    case "directResponse":
      return { case: "directResponse", value: directResponseAction(action) };
  }
}

function matchOf(match: MatchInput): MessageInitShape<typeof RouteMatchSchema> {
  return {
    pathSpecifier: pathOf(match),
    ...(match.caseSensitive !== undefined && { caseSensitive: match.caseSensitive }),
    headers: match.headers.map(headerMatcher),
    queryParameters: match.queryParams.map(({ name, match: text }) => queryMatcher(name, text)),
    dynamicMetadata: match.claims.map(claimMatcher),
  };
}

function pathOf({ path }: MatchInput): NonNullable<MessageInitShape<typeof RouteMatchSchema>["pathSpecifier"]> {
  switch (path?.kind) {
    case undefined:
      return { case: "prefix", value: "/" };
    case "exact":
      return { case: "path", value: path.value };
    case "prefix":
      return { case: "prefix", value: path.value };
    case "regex":
      return { case: "safeRegex", value: { regex: path.value } };
  }
}
