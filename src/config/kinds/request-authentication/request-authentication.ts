import {
  type JWTRule,
  type RequestAuthentication,
  RequestAuthenticationSchema,
} from "../../../gen/istio/security/v1beta1/request_authentication_pb.js";
import { durationFault } from "../../checks/duration.ts";
import { lineFault, soughtHeaderFault, strictHeaderNameFault } from "../../checks/header.ts";
import type { Place } from "../../checks/place.ts";
import { checkTarget } from "../../checks/target.ts";
import { istioKind } from "../istio-kind.ts";
import { TARGET_RULES } from "../target-rules.ts";
import { checkJwks, jwksUriFault } from "./check-jwks.ts";

const NOT_EMPTY = { minLength: 1 } as const;

/** Which tokens of end users are believed, and where they are found. */
export const requestAuthentication = istioKind({
  kind: "RequestAuthentication",
  group: "security.istio.io",
  versions: ["v1", "v1beta1"],
  plural: "requestauthentications",
  singular: "requestauthentication",
  shortNames: ["ra"],
  schema: RequestAuthenticationSchema,
  rules: {
    ...TARGET_RULES,
    jwtRules: { maxItems: 4096 },
    "jwtRules[].issuer": NOT_EMPTY,
    "jwtRules[].audiences[]": NOT_EMPTY,
    "jwtRules[].jwksUri": { minLength: 1, maxLength: 2048 },
    "jwtRules[].fromHeaders[]": { required: ["name"] },
    "jwtRules[].fromHeaders[].name": NOT_EMPTY,
    "jwtRules[].fromParams[]": NOT_EMPTY,
    "jwtRules[].fromCookies[]": NOT_EMPTY,
    "jwtRules[].spaceDelimitedClaims": { maxItems: 64 },
    "jwtRules[].spaceDelimitedClaims[]": NOT_EMPTY,
  },
  check: checkRequestAuthentication,
});

function checkRequestAuthentication(spec: RequestAuthentication, place: Place): void {
  checkTarget(spec, place);
  for (const [index, rule] of spec.jwtRules.entries()) checkJwtRule(rule, place.in("jwtRules", index));
}

function checkJwtRule(rule: JWTRule, place: Place): void {
  for (const name of ["audiences", "fromParams", "fromCookies", "spaceDelimitedClaims"] as const) {
    for (const [index, text] of rule[name].entries()) if (text === "") place.in(name, index).fault("field.invalid", "must not be empty");
  }
  if (rule.issuer === "" && rule.jwksUri === "") place.in("issuer").fault("field.required", "give an issuer or the jwksUri of its keys");
  if (rule.jwks !== "" && rule.jwksUri !== "") place.in("jwksUri").fault("field.conflict", "cannot be combined with jwks");
  if (rule.jwksUri !== "") place.in("jwksUri").check("field.invalid", jwksUriFault(rule.jwksUri));
  if (rule.jwks !== "") checkJwks(rule.jwks, place.in("jwks"));
  for (const [index, { name, prefix }] of rule.fromHeaders.entries()) {
    const at = place.in("fromHeaders", index);
    if (name === "") at.in("name").fault("field.required", "must be set");
    else at.in("name").check("field.invalid", soughtHeaderFault(name));
    at.in("prefix").check("field.invalid", lineFault(prefix));
  }
  if (rule.outputPayloadToHeader !== "")
    place.in("outputPayloadToHeader").check("field.invalid", soughtHeaderFault(rule.outputPayloadToHeader));
  for (const [index, { header, claim }] of rule.outputClaimToHeaders.entries()) {
    const at = place.in("outputClaimToHeaders", index);
    at.in("header").check("field.invalid", strictHeaderNameFault(header));
    if (claim === "") at.in("claim").fault("field.required", "must be set");
  }
  if (rule.timeout !== undefined) place.in("timeout").check("field.range", durationFault(rule.timeout));
}
