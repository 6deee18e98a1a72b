import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Principal, PrincipalSchema } from "../../../gen/envoy/config/rbac/v3/rbac_pb.js";
import type { StringMatcher } from "../../../gen/envoy/type/matcher/v3/string_pb.js";
import { addressRange } from "./address-range.ts";
import { demandsOf } from "./demands.ts";
import { matchHeader } from "./header-match.ts";
import { claimMatch, claimText } from "./metadata-match.ts";
import type { AttributeMatch, PrincipalAttribute } from "./rbac-input.ts";
import { literal, matchRegex, matchText, parsePattern, patternRegex } from "./text-pattern.ts";
import { tokenIdentity } from "./token-identity.ts";

const principal = (identifier: NonNullable<MessageInitShape<typeof PrincipalSchema>["identifier"]>): Principal =>
  create(PrincipalSchema, { identifier });

const ANY = principal({ case: "any", value: true });
const and = (ids: readonly Principal[]): Principal => principal({ case: "andIds", value: { ids: [...ids] } });
const or = (ids: readonly Principal[]): Principal => principal({ case: "orIds", value: { ids: [...ids] } });
const not = (id: Principal): Principal => principal({ case: "notId", value: id });

/** What no caller is. */
export const NO_PRINCIPAL: Principal = not(ANY);

/** One source of a rule: all of its demands, or anybody where there are none. */
export function sourcePrincipal(matches: readonly AttributeMatch<PrincipalAttribute>[]): Principal {
  const ids = matches.flatMap((match) => demandsOf(match, isOneOf, not));
  return and(ids.length > 0 ? ids : [ANY]);
}

function isOneOf(attribute: PrincipalAttribute, values: readonly string[]): Principal {
  switch (attribute.kind) {
    case "claim":
      return principal({ case: "metadata", value: claimMatch(attribute.path, values) });
    case "requestPrincipal": {
      const ids = values.map(tokenPrincipal);
      const [first] = ids;
      return ids.length === 1 && first !== undefined ? first : or(ids);
    }
    default:
      return or(values.map((value) => is(attribute, value)));
  }
}

function tokenPrincipal(value: string): Principal {
  const { issuer, subject } = tokenIdentity(value);
  return and([
    principal({ case: "metadata", value: claimText("iss", matchText(issuer)) }),
    principal({ case: "metadata", value: claimText("sub", matchText(subject)) }),
  ]);
}

function is(attribute: Exclude<PrincipalAttribute, { kind: "claim" | "requestPrincipal" }>, value: string): Principal {
  switch (attribute.kind) {
    case "principal":
      return peer(peerIdentity(value));
    case "namespace":
      return peer(matchRegex(`.*/ns/${value.split("*").map(literal).join(".*")}/.*`)); // Stars may stand anywhere, as in Istio.
    case "serviceAccount":
      return peer(matchRegex(accountRegex(value)));
    case "trustDomain":
      return peer(trustDomain(value));
    case "peerAddress":
      return principal({ case: "directRemoteIp", value: addressRange(value) });
    case "clientAddress":
      return principal({ case: "remoteIp", value: addressRange(value) });
    case "header":
      return principal({ case: "header", value: matchHeader(attribute.name, value) });
  }
}

const peer = (principalName: StringMatcher): Principal => principal({ case: "authenticated", value: { principalName } });

/** Identities are written without `spiffe://`, which certificates have. */
function peerIdentity(value: string): StringMatcher {
  const pattern = parsePattern(value);
  switch (pattern.kind) {
    case "any":
      return matchText(pattern);
    case "suffix":
      return matchRegex(`spiffe://.*${literal(pattern.text)}`);
    default:
      return matchText({ kind: pattern.kind, text: `spiffe://${pattern.text}` });
  }
}

/** A pattern is about the domain alone: what it leaves open has no slash. */
function trustDomain(value: string): StringMatcher {
  const pattern = parsePattern(value);
  switch (pattern.kind) {
    case "any":
      return matchText({ kind: "prefix", text: "spiffe://" });
    case "exact":
      return matchText({ kind: "prefix", text: `spiffe://${pattern.text}/` });
    default:
      return matchRegex(`spiffe://${patternRegex(pattern, "[^/]*")}/.*`);
  }
}

/** Identities may have further segments between the namespace and the account, and behind it. */
function accountRegex(value: string): string {
  const [namespace = "", account = ""] = value.split("/");
  return `spiffe://.+/ns/${literal(namespace)}/(.+/|)sa/${literal(account)}(/.+)?`;
}
