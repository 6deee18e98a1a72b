import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HeaderMatcherSchema, QueryParameterMatcherSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import type { MetadataMatcherSchema } from "../../gen/envoy/type/matcher/v3/metadata_pb.js";
import type { StringMatcherSchema } from "../../gen/envoy/type/matcher/v3/string_pb.js";
import type { ValueMatcherSchema } from "../../gen/envoy/type/matcher/v3/value_pb.js";
import type { ClaimMatch, HeaderMatch, TextMatch } from "./route-input.ts";

/** A string matcher. A prefix or regex that takes everything stays what it is: "present" is a different question. */
export function stringMatcher({ kind, value }: TextMatch): MessageInitShape<typeof StringMatcherSchema> {
  switch (kind) {
    case "exact":
      return { matchPattern: { case: "exact", value } };
    case "prefix":
      return { matchPattern: { case: "prefix", value } };
    case "regex":
      return { matchPattern: { case: "safeRegex", value: { regex: value } } };
  }
}

/** An unwanted header may also be missing: to Envoy that is a mismatch, inverted or not, unless a missing header counts as an empty one. */
export function headerMatcher({ name, match, invert }: HeaderMatch): MessageInitShape<typeof HeaderMatcherSchema> {
  const inverted = invert ? { invertMatch: true } : {};
  if (match === undefined) return { name, ...inverted, headerMatchSpecifier: { case: "presentMatch", value: true } };
  return {
    name,
    ...inverted,
    ...(invert && { treatMissingHeaderAsEmpty: true }),
    headerMatchSpecifier: { case: "stringMatch", value: stringMatcher(match) },
  };
}

export function queryMatcher(name: string, match: TextMatch | undefined): MessageInitShape<typeof QueryParameterMatcherSchema> {
  if (match === undefined) return { name, queryParameterMatchSpecifier: { case: "presentMatch", value: true } };
  return { name, queryParameterMatchSpecifier: { case: "stringMatch", value: stringMatcher(match) } };
}

/** A condition on a claim of the verified token, which the JWT filter leaves in metadata. */
export const claimMatcher = ({ path, match, invert }: ClaimMatch): MessageInitShape<typeof MetadataMatcherSchema> => ({
  filter: "envoy.filters.http.jwt_authn",
  path: ["payload", ...path].map((key) => ({ segment: { case: "key" as const, value: key } })),
  value: { matchPattern: match === undefined ? { case: "presentMatch", value: true } : claimTexts(match) },
  invert,
});

/** Claims may be a text or a list of texts; either form matches. */
function claimTexts(match: TextMatch): MessageInitShape<typeof ValueMatcherSchema>["matchPattern"] & object {
  const text = { matchPattern: { case: "stringMatch" as const, value: stringMatcher(match) } };
  const list = { matchPattern: { case: "listMatch" as const, value: { matchPattern: { case: "oneOf" as const, value: text } } } };
  return { case: "orMatch", value: { valueMatchers: [list, text] } };
}
