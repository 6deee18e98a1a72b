import { create } from "@bufbuild/protobuf";
import { type HeaderMatcher, HeaderMatcherSchema } from "../../../gen/envoy/config/route/v3/route_components_pb.js";
import { matchText, parsePattern } from "./text-pattern.ts";

/** A demand on a header; `*` asks that it is there. */
export function matchHeader(name: string, text: string, options: { readonly ignoreCase?: boolean } = {}): HeaderMatcher {
  const pattern = parsePattern(text);
  return create(HeaderMatcherSchema, {
    name,
    headerMatchSpecifier:
      pattern.kind === "any" ? { case: "presentMatch", value: true } : { case: "stringMatch", value: matchText(pattern, options) },
  });
}
