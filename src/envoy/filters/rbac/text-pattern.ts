import { create } from "@bufbuild/protobuf";
import { type StringMatcher, StringMatcherSchema } from "../../../gen/envoy/type/matcher/v3/string_pb.js";

/** A text of a policy: `*` is any that is not empty, a star at an end leaves that end open, all else is meant literally. */
export type TextPattern = { readonly kind: "any" } | { readonly kind: "exact" | "prefix" | "suffix"; readonly text: string };

export function parsePattern(text: string): TextPattern {
  if (text === "*") return { kind: "any" };
  if (text.startsWith("*")) return { kind: "suffix", text: text.slice(1) };
  return text.endsWith("*") ? { kind: "prefix", text: text.slice(0, -1) } : { kind: "exact", text };
}

/** Characters that mean something in RE2. */
const SPECIAL = /[\\.+*?()|[\]{}^$]/g;

/** A regular expression that matches this text and nothing else. */
export const literal = (text: string): string => text.replace(SPECIAL, "\\$&");

/** The regular expression of a pattern, for use inside a larger one; `open` is what a star stands for. */
export function patternRegex(pattern: TextPattern, open: string): string {
  switch (pattern.kind) {
    case "any":
      return open;
    case "exact":
      return literal(pattern.text);
    case "prefix":
      return literal(pattern.text) + open;
    case "suffix":
      return open + literal(pattern.text);
  }
}

/** Matches a whole text against a pattern. */
export function matchText(pattern: TextPattern, options: { readonly ignoreCase?: boolean } = {}): StringMatcher {
  if (pattern.kind === "any") return matchRegex(".+");
  const ignoreCase = options.ignoreCase === true;
  return create(StringMatcherSchema, { matchPattern: { case: pattern.kind, value: pattern.text }, ...(ignoreCase && { ignoreCase }) });
}

/** Matches a whole text against a regular expression. */
export const matchRegex = (regex: string): StringMatcher =>
  create(StringMatcherSchema, { matchPattern: { case: "safeRegex", value: { regex } } });
