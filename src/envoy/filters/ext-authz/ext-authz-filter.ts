import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ApiVersion } from "../../../gen/envoy/config/core/v3/config_source_pb.js";
import { type GrpcService, GrpcServiceSchema } from "../../../gen/envoy/config/core/v3/grpc_service_pb.js";
import { type Filter, FilterSchema } from "../../../gen/envoy/config/listener/v3/listener_components_pb.js";
import {
  ExtAuthzSchema as HttpExtAuthzSchema,
  type HttpService,
  HttpServiceSchema,
} from "../../../gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.js";
import { ExtAuthzSchema as NetworkExtAuthzSchema } from "../../../gen/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import type { MetadataMatcher } from "../../../gen/envoy/type/matcher/v3/metadata_pb.js";
import { type ListStringMatcher, ListStringMatcherSchema } from "../../../gen/envoy/type/matcher/v3/string_pb.js";
import { ValueMatcherSchema } from "../../../gen/envoy/type/matcher/v3/value_pb.js";
import { anyOf } from "../../../wire/encode.ts";
import { matchMetadata } from "../rbac/metadata-match.ts";
import { HTTP_RBAC, NETWORK_RBAC, NETWORK_STAT_PREFIX } from "../rbac/rbac-filter.ts";
import { matchText, parsePattern } from "../rbac/text-pattern.ts";
import type { ExtAuthzInput, GrpcExtAuthzInput, HttpExtAuthzInput } from "./ext-authz-input.ts";

/** Prefix of what the RBAC filter in front reports: by it this filter knows which requests to ask about. */
export const EXT_AUTHZ_SHADOW_PREFIX = "istio_ext_authz_";

/** Asks about the requests for which a rule whose name has this prefix matched in the RBAC filter in front. */
export function httpExtAuthz(input: ExtAuthzInput, rulePrefix: string): HttpFilter {
  const message = create(HttpExtAuthzSchema, {
    services:
      input.protocol === "grpc" ? { case: "grpcService", value: grpcService(input) } : { case: "httpService", value: httpService(input) },
    transportApiVersion: ApiVersion.V3,
    failureModeAllow: input.failOpen,
    clearRouteCache: input.clearRouteCache,
    filterEnabledMetadata: matchedRule(HTTP_RBAC, rulePrefix),
    ...(input.statusOnError !== undefined && { statusOnError: { code: input.statusOnError } }),
    ...(input.body !== undefined && {
      withRequestBody: {
        maxRequestBytes: input.body.maxBytes,
        allowPartialMessage: input.body.allowPartial,
        packAsBytes: input.body.packAsBytes,
      },
    }),
    ...(input.protocol === "http" && headerList("allowedHeaders", input.requestHeaders)),
  });
  return create(HttpFilterSchema, {
    name: "envoy.filters.http.ext_authz",
    configType: { case: "typedConfig", value: anyOf(HttpExtAuthzSchema, message) },
  });
}

/** The same for connections, which only gRPC authorizers can be asked about. */
export function networkExtAuthz(input: GrpcExtAuthzInput, rulePrefix: string): Filter {
  const message = create(NetworkExtAuthzSchema, {
    grpcService: grpcService(input),
    transportApiVersion: ApiVersion.V3,
    failureModeAllow: input.failOpen,
    filterEnabledMetadata: matchedRule(NETWORK_RBAC, rulePrefix),
    statPrefix: NETWORK_STAT_PREFIX,
  });
  return create(FilterSchema, {
    name: "envoy.filters.network.ext_authz",
    configType: { case: "typedConfig", value: anyOf(NetworkExtAuthzSchema, message) },
  });
}

const matchedRule = (rbacFilter: string, rulePrefix: string): MetadataMatcher =>
  matchMetadata(
    rbacFilter,
    [`${EXT_AUTHZ_SHADOW_PREFIX}shadow_effective_policy_id`],
    create(ValueMatcherSchema, { matchPattern: { case: "stringMatch", value: matchText({ kind: "prefix", text: rulePrefix }) } }),
  );

const grpcService = ({ cluster, host, timeoutMs }: GrpcExtAuthzInput): GrpcService =>
  create(GrpcServiceSchema, {
    targetSpecifier: { case: "envoyGrpc", value: { clusterName: cluster, authority: host } },
    timeout: durationFromMs(timeoutMs),
  });

function httpService(input: HttpExtAuthzInput): HttpService {
  const answer = {
    ...headerList("allowedUpstreamHeaders", input.upstreamHeaders),
    ...headerList("allowedClientHeaders", input.deniedHeaders),
    ...headerList("allowedClientHeadersOnSuccess", input.allowedHeaders),
  };
  return create(HttpServiceSchema, {
    serverUri: {
      uri: `http://${input.host}`,
      httpUpstreamType: { case: "cluster", value: input.cluster },
      timeout: durationFromMs(input.timeoutMs),
    },
    pathPrefix: input.pathPrefix,
    ...(input.additionalHeaders.length > 0 && {
      authorizationRequest: { headersToAdd: input.additionalHeaders.map(({ name, value }) => ({ key: name, value })) },
    }),
    ...(Object.keys(answer).length > 0 && { authorizationResponse: answer }),
  });
}

function headerList<K extends string>(field: K, names: readonly string[]): { readonly [field in K]?: ListStringMatcher } {
  if (names.length === 0) return {};
  const patterns = names.map((name) => matchText(parsePattern(name), { ignoreCase: true }));
  return { [field]: create(ListStringMatcherSchema, { patterns }) } as { readonly [field in K]: ListStringMatcher };
}
