import { create } from "@bufbuild/protobuf";
import { type MetadataMatcher, MetadataMatcherSchema } from "../../../gen/envoy/type/matcher/v3/metadata_pb.js";
import type { StringMatcher } from "../../../gen/envoy/type/matcher/v3/string_pb.js";
import { type ValueMatcher, ValueMatcherSchema } from "../../../gen/envoy/type/matcher/v3/value_pb.js";
import { matchText, parsePattern } from "./text-pattern.ts";

/** Where the JWT filter leaves the claims of a token. */
export const JWT_FILTER = "envoy.filters.http.jwt_authn";
export const JWT_PAYLOAD = "payload";

/** A demand on something a filter left in dynamic metadata. */
export function matchMetadata(filter: string, path: readonly string[], value: ValueMatcher): MetadataMatcher {
  return create(MetadataMatcherSchema, { filter, path: path.map((key) => ({ segment: { case: "key" as const, value: key } })), value });
}

/** One of the values, written as a text or, in brackets, as an entry of a list. */
export function metadataValue(values: readonly string[]): ValueMatcher {
  return oneOf(
    values.map((value) => (value.startsWith("[") && value.endsWith("]") ? inList(textValue(value.slice(1, -1))) : textValue(value))),
  );
}

/** A claim that is one of the values, or a list with one of them. */
export function claimMatch(path: readonly string[], values: readonly string[]): MetadataMatcher {
  const value = oneOf(values.map(textValue));
  return matchMetadata(JWT_FILTER, [JWT_PAYLOAD, ...path], or([inList(value), value]));
}

/** A claim that is one text. */
export const claimText = (name: string, text: StringMatcher): MetadataMatcher =>
  matchMetadata(JWT_FILTER, [JWT_PAYLOAD, name], create(ValueMatcherSchema, { matchPattern: { case: "stringMatch", value: text } }));

const textValue = (text: string): ValueMatcher =>
  create(ValueMatcherSchema, { matchPattern: { case: "stringMatch", value: matchText(parsePattern(text)) } });

const inList = (value: ValueMatcher): ValueMatcher =>
  create(ValueMatcherSchema, { matchPattern: { case: "listMatch", value: { matchPattern: { case: "oneOf", value } } } });

const oneOf = (values: readonly ValueMatcher[]): ValueMatcher => {
  const [first] = values;
  return values.length === 1 && first !== undefined ? first : or(values);
};

const or = (valueMatchers: readonly ValueMatcher[]): ValueMatcher =>
  create(ValueMatcherSchema, { matchPattern: { case: "orMatch", value: { valueMatchers: [...valueMatchers] } } });
