import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import {
  type DirectResponseActionSchema,
  type RedirectActionSchema,
  RedirectAction_RedirectResponseCode as RedirectCode,
  type RouteAction_HashPolicySchema,
  type RouteAction_RequestMirrorPolicySchema,
  type RouteActionSchema,
} from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { fractionOf } from "./fraction.ts";
import { headerAdditions } from "./header-changes.ts";
import { retryPolicy } from "./retry.ts";
import type { ActionInput, DestinationInput, HashPolicyInput, MirrorInput } from "./route-input.ts";

type RouteTo = Extract<ActionInput, { kind: "route" }>;
type Redirect = Extract<ActionInput, { kind: "redirect" }>;
type DirectResponse = Extract<ActionInput, { kind: "directResponse" }>;

export function routeAction(action: RouteTo): MessageInitShape<typeof RouteActionSchema> {
  const timeout = durationOfMs(action.timeoutMs);
  const only = soleDestination(action);
  const hostRewrite = action.rewrite?.authority ?? only?.hostRewrite;
  return {
    clusterSpecifier: only !== undefined ? { case: "cluster", value: only.cluster } : weighted(action.destinations),
    timeout,
    maxGrpcTimeout: timeout,
    ...(action.maxStreamMs !== undefined && { maxStreamDuration: { maxStreamDuration: durationOfMs(action.maxStreamMs) } }),
    ...(action.retry !== undefined && { retryPolicy: retryPolicy(action.retry) }),
    ...(action.rewrite?.prefix !== undefined && { prefixRewrite: action.rewrite.prefix }),
    ...(action.rewrite?.regex !== undefined && {
      regexRewrite: { pattern: { regex: action.rewrite.regex.pattern }, substitution: action.rewrite.regex.substitution },
    }),
    ...(hostRewrite !== undefined && { hostRewriteSpecifier: { case: "hostRewriteLiteral" as const, value: hostRewrite } }),
    requestMirrorPolicies: action.mirrors.map(mirrorPolicy),
    hashPolicy: action.hashPolicies.map(hashPolicy),
    ...(action.forwardHost === true && { appendXForwardedHost: true }),
  };
}

/** The destination of a route that names one alone. The only one of several that has a share is not that: headers stay with it. */
export function soleDestination({ destinations }: RouteTo): DestinationInput | undefined {
  const [first, ...others] = destinations;
  return others.length === 0 && first?.weight === 0 ? first : undefined;
}

function weighted(destinations: readonly DestinationInput[]): NonNullable<MessageInitShape<typeof RouteActionSchema>["clusterSpecifier"]> {
  return {
    case: "weightedClusters",
    value: {
      clusters: destinations.map((destination) => ({
        name: destination.cluster,
        weight: destination.weight,
        requestHeadersToAdd: headerAdditions(destination.request),
        requestHeadersToRemove: [...destination.request.remove],
        responseHeadersToAdd: headerAdditions(destination.response),
        responseHeadersToRemove: [...destination.response.remove],
        ...(destination.hostRewrite !== undefined && {
          hostRewriteSpecifier: { case: "hostRewriteLiteral" as const, value: destination.hostRewrite },
        }),
      })),
    },
  };
}

/** The shadow keeps the host header of the original request: a suffix would break hosts that route by name. */
function mirrorPolicy({ cluster, share }: MirrorInput): MessageInitShape<typeof RouteAction_RequestMirrorPolicySchema> {
  return {
    cluster,
    runtimeFraction: { defaultValue: fractionOf(share) },
    traceSampled: false,
    disableShadowHostSuffixAppend: true,
  };
}

function hashPolicy(policy: HashPolicyInput): MessageInitShape<typeof RouteAction_HashPolicySchema> {
  switch (policy.kind) {
    case "header":
      return { policySpecifier: { case: "header", value: { headerName: policy.name } } };
    case "queryParam":
      return { policySpecifier: { case: "queryParameter", value: { name: policy.name } } };
    case "sourceIp":
      return { policySpecifier: { case: "connectionProperties", value: { sourceIp: true } } };
    case "grpcChannel":
      return { policySpecifier: { case: "filterState", value: { key: "io.grpc.channel_id" } } };
    case "cookie":
      return {
        policySpecifier: {
          case: "cookie",
          value: {
            name: policy.name,
            path: policy.path,
            ...(policy.ttlMs !== undefined && { ttl: durationOfMs(policy.ttlMs) }),
            attributes: policy.attributes.map(({ name, value }) => ({ name, value })),
          },
        },
      };
  }
}

const REDIRECT_CODES: Readonly<Record<number, RedirectCode>> = {
  301: RedirectCode.MOVED_PERMANENTLY,
  302: RedirectCode.FOUND,
  303: RedirectCode.SEE_OTHER,
  307: RedirectCode.TEMPORARY_REDIRECT,
  308: RedirectCode.PERMANENT_REDIRECT,
};

export function redirectAction(action: Redirect): MessageInitShape<typeof RedirectActionSchema> {
  return {
    hostRedirect: action.authority,
    pathRewriteSpecifier:
      action.prefixRewrite !== undefined
        ? { case: "prefixRewrite", value: action.prefixRewrite }
        : { case: "pathRedirect", value: action.path },
    ...(action.scheme !== "" && { schemeRewriteSpecifier: { case: "schemeRedirect" as const, value: action.scheme } }),
    ...(action.port !== undefined && { portRedirect: action.port }),
    responseCode: REDIRECT_CODES[action.code] ?? RedirectCode.MOVED_PERMANENTLY,
  };
}

export function directResponseAction({ status, body }: DirectResponse): MessageInitShape<typeof DirectResponseActionSchema> {
  if (body === undefined) return { status };
  if (body.bytes !== undefined)
    return { status, body: { specifier: { case: "inlineBytes", value: new Uint8Array(Buffer.from(body.bytes, "base64")) } } };
  return { status, body: { specifier: { case: "inlineString", value: body.text ?? "" } } };
}
