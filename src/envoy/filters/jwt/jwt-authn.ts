import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  JwtAuthenticationSchema,
  type JwtProvider,
  JwtProviderSchema,
  type JwtRequirement,
  JwtRequirementSchema,
} from "../../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../../wire/encode.ts";
import { JWT_FILTER, JWT_PAYLOAD } from "../rbac/metadata-match.ts";

/** Where the keys of an issuer come from: given here, or fetched by Envoy from a service of the cluster. */
export type JwksInput = { readonly jwks: string } | { readonly uri: string; readonly cluster: string; readonly timeoutMs: number };

/** An issuer whose tokens are accepted, and what becomes of them. */
export interface JwtRuleInput {
  readonly issuer: string;
  /** Audiences a token may be for; empty = any. */
  readonly audiences: readonly string[];
  readonly keys: JwksInput;
  /** Where tokens are looked for; nothing at all = Envoy's default, header `authorization` and parameter `access_token`. */
  readonly fromHeaders: readonly { readonly name: string; readonly prefix: string }[];
  readonly fromParams: readonly string[];
  readonly fromCookies: readonly string[];
  /** Leave the token on the request. */
  readonly forward: boolean;
  /** Header that takes the payload; empty = none. */
  readonly payloadHeader: string;
  readonly claimHeaders: readonly { readonly header: string; readonly claim: string }[];
  /** Claims whose text is a list with spaces between. */
  readonly spaceDelimitedClaims: readonly string[];
}

/** All that may influence the filter that checks tokens. */
export interface JwtInput {
  readonly rules: readonly JwtRuleInput[];
  /** Choose the route again once claims are known: gateways may route by them. */
  readonly clearRouteCache: boolean;
}

/** Keys are fetched again after this time; Istio's value. */
const REMOTE_KEYS_MS = 300_000;

/**
 * Checks tokens and leaves their claims for authorization. A request without a token passes, as RequestAuthentication says: to demand one
 * is up to an AuthorizationPolicy. A token that is there must be good, at each place it may be at.
 */
export function jwtAuthn({ rules, clearRouteCache }: JwtInput): HttpFilter {
  const names = rules.map((_, index) => `origins-${index}`);
  const message = create(JwtAuthenticationSchema, {
    providers: Object.fromEntries(rules.map((rule, index) => [`origins-${index}`, provider(rule, clearRouteCache)])),
    rules: [
      {
        match: { pathSpecifier: { case: "prefix", value: "/" } },
        requirementType: { case: "requires", value: requirement(names) },
      },
    ],
    bypassCorsPreflight: true,
  });
  return create(HttpFilterSchema, {
    name: JWT_FILTER,
    configType: { case: "typedConfig", value: anyOf(JwtAuthenticationSchema, message) },
  });
}

/** A good token of some issuer, or no bad one of any: Envoy's `allow_missing` alone would let a bad token pass beside a second issuer. */
function requirement(names: readonly string[]): JwtRequirement {
  const goodOrMissing = names.map((name) => any([named(name), MISSING]));
  const [only] = goodOrMissing;
  if (names.length === 1 && only !== undefined) return only;
  const noneBad = create(JwtRequirementSchema, { requiresType: { case: "requiresAll", value: { requirements: goodOrMissing } } });
  return any([...names.map(named), noneBad]);
}

const MISSING = create(JwtRequirementSchema, { requiresType: { case: "allowMissing", value: {} } });

const named = (value: string): JwtRequirement => create(JwtRequirementSchema, { requiresType: { case: "providerName", value } });

const any = (requirements: readonly JwtRequirement[]): JwtRequirement =>
  create(JwtRequirementSchema, { requiresType: { case: "requiresAny", value: { requirements: [...requirements] } } });

/** Claims that are lists with spaces between in OAuth: RFC 8693 `scope`, and `permission`, which Istio adds. */
const SPACE_DELIMITED = ["permission", "scope"];

function provider(rule: JwtRuleInput, clearRouteCache: boolean): JwtProvider {
  return create(JwtProviderSchema, {
    issuer: rule.issuer,
    audiences: [...rule.audiences],
    jwksSourceSpecifier: keySource(rule.keys),
    forward: rule.forward,
    fromHeaders: rule.fromHeaders.map(({ name, prefix }) => ({ name, valuePrefix: prefix })),
    fromParams: [...rule.fromParams],
    fromCookies: [...rule.fromCookies],
    forwardPayloadHeader: rule.payloadHeader,
    payloadInMetadata: JWT_PAYLOAD,
    normalizePayloadInMetadata: { spaceDelimitedClaims: [...new Set([...SPACE_DELIMITED, ...rule.spaceDelimitedClaims])].sort() },
    claimToHeaders: rule.claimHeaders.map(({ header, claim }) => ({ headerName: header, claimName: claim })),
    clearRouteCache,
  });
}

function keySource(keys: JwksInput) {
  if ("jwks" in keys) return { case: "localJwks", value: { specifier: { case: "inlineString", value: keys.jwks } } } as const;
  const httpUri = {
    uri: keys.uri,
    httpUpstreamType: { case: "cluster", value: keys.cluster },
    timeout: durationFromMs(keys.timeoutMs),
  } as const;
  return { case: "remoteJwks", value: { httpUri, cacheDuration: durationFromMs(REMOTE_KEYS_MS) } } as const;
}
