import type { ConfigObject } from "../../config/object.ts";
import type { JwksInput, JwtRuleInput } from "../../envoy/filters/jwt/jwt-authn.ts";
import type { JWTRule, RequestAuthentication } from "../../gen/istio/security/v1beta1/request_authentication_pb.js";
import { type KeyLocation, type KeyServers, keyCluster, keyLocation } from "./key-location.ts";
import { writtenKeySet } from "./key-set.ts";

export interface AuthenticationContext extends KeyServers {
  /** Keys that were fetched from a place, undefined where there are none. */
  readonly fetchedKeys: (location: KeyLocation) => string | undefined;
}

/** The issuers that the RequestAuthentications of a workload accept. By issuer, as in Istio, so that the order of policies means nothing. */
export function jwtRulesOf(
  policies: readonly Pick<ConfigObject<RequestAuthentication>, "namespace" | "spec">[],
  context: AuthenticationContext,
): readonly JwtRuleInput[] {
  return policies
    .flatMap(({ namespace, spec }) => spec.jwtRules.map((rule) => ({ rule, namespace })))
    .toSorted(({ rule: a }, { rule: b }) => (a.issuer < b.issuer ? -1 : a.issuer > b.issuer ? 1 : 0))
    .map((written) => jwtRule(written, context));
}

/** A rule and the namespace of the policy it stands in. */
interface WrittenRule {
  readonly rule: JWTRule;
  readonly namespace: string;
}

function jwtRule({ rule, namespace }: WrittenRule, context: AuthenticationContext): JwtRuleInput {
  return {
    issuer: rule.issuer,
    audiences: rule.audiences,
    keys: keysOf({ rule, namespace }, context),
    fromHeaders: rule.fromHeaders.map(({ name, prefix }) => ({ name, prefix })),
    fromParams: rule.fromParams,
    fromCookies: rule.fromCookies,
    forward: rule.forwardOriginalToken,
    payloadHeader: rule.outputPayloadToHeader,
    claimHeaders: rule.outputClaimToHeaders.map(({ header, claim }) => ({ header, claim })),
    spaceDelimitedClaims: rule.spaceDelimitedClaims,
  };
}

/** A cluster without endpoints that every proxy has. */
const NOWHERE = "BlackHoleCluster";

/**
 * Keys as given, or as they were fetched for us; or fetched by Envoy. Keys that nobody has are fetched from nowhere: Envoy refuses all
 * tokens of the issuer and says that their keys could not be fetched. No key stands in for them, since any key might be somebody's
 * (CVE-2026-31837), and an empty set is a configuration that Envoy does not take.
 */
function keysOf({ rule, namespace }: WrittenRule, context: AuthenticationContext): JwksInput {
  const location = keyLocation(rule);
  const cluster = location === undefined ? undefined : keyCluster(location, namespace, context);
  const uri = fetchable(rule.jwks === "" && rule.jwksUri !== "" ? rule.jwksUri : rule.issuer);
  const timeoutMs = location?.timeoutMs ?? NOWHERE_TIMEOUT_MS;
  if (cluster !== undefined) return { uri, cluster, timeoutMs };
  const jwks = location === undefined ? writtenKeySet(rule.jwks) : context.fetchedKeys(location);
  return jwks === undefined ? { uri, cluster: NOWHERE, timeoutMs } : { jwks };
}

/** Nobody waits for an answer from nowhere. */
const NOWHERE_TIMEOUT_MS = 5_000;

/** An issuer need not be a URL (`somebody@example.com`), and Envoy refuses the whole listener for keys that are to be fetched from none. */
const fetchable = (uri: string): string => (/^https?:/i.test(uri) && URL.canParse(uri) ? uri : NO_URI);

const NO_URI = "https://keys.invalid/";
