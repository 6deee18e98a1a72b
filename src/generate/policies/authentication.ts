import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ConfigObject } from "../../config/object.ts";
import type { JwksInput, JwtRuleInput } from "../../envoy/filters/jwt/jwt-authn.ts";
import type { JWTRule, RequestAuthentication } from "../../gen/istio/security/v1beta1/request_authentication_pb.js";
import type { Service } from "../../model/service.ts";
import { usableKeySet } from "./key-set.ts";

export interface AuthenticationContext {
  /** The service that a host means in the namespace of a policy. One that is hidden from there is none: its being there is nobody's business. */
  readonly visibleService: (host: string, namespace: string) => Pick<Service, "ports"> | undefined;
  /** Envoy fetches keys itself, also from hosts that are no service. */
  readonly envoyFetchesKeys: boolean;
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

/** How long Envoy may take to fetch keys where the rule does not say; Istio's value. */
const FETCH_TIMEOUT_MS = 5_000;

/** A cluster without endpoints that every proxy has. */
const NOWHERE = "BlackHoleCluster";

/**
 * Keys as given; or fetched by Envoy, from a service that the mesh knows. Keys that nobody has are fetched from nowhere: Envoy refuses all
 * tokens of the issuer and says that their keys could not be fetched. No key stands in for them, since any key might be somebody's
 * (CVE-2026-31837), and an empty set is a configuration that Envoy does not take.
 */
function keysOf({ rule, namespace }: WrittenRule, context: AuthenticationContext): JwksInput {
  if (rule.jwks !== "") {
    const jwks = usableKeySet(rule.jwks);
    if (jwks !== undefined) return { jwks };
  }
  const timeoutMs = rule.timeout === undefined ? FETCH_TIMEOUT_MS : durationMs(rule.timeout);
  const uri = rule.jwks === "" ? rule.jwksUri : "";
  return { uri: fetchable(uri || rule.issuer), cluster: uri === "" ? NOWHERE : keyServer(uri, namespace, context), timeoutMs };
}

/** An issuer need not be a URL (`somebody@example.com`), and Envoy refuses the whole listener for keys that are to be fetched from none. */
const fetchable = (uri: string): string => (/^https?:/i.test(uri) && URL.canParse(uri) ? uri : NO_URI);

const NO_URI = "https://keys.invalid/";

const DEFAULT_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

function keyServer(uri: string, namespace: string, { visibleService, envoyFetchesKeys }: AuthenticationContext): string {
  if (!URL.canParse(uri)) return NOWHERE;
  const { hostname, port, protocol } = new URL(uri);
  const number = port === "" ? DEFAULT_PORTS[protocol] : Number(port);
  if (number === undefined) return NOWHERE;
  const known = visibleService(hostname, namespace)?.ports.some((one) => one.number === number) === true;
  return known || envoyFetchesKeys ? `outbound|${number}||${hostname}` : NOWHERE;
}
