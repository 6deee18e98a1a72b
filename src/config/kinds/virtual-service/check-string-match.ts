import type { StringMatch } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { Place } from "../../checks/place.ts";
import { regexFault } from "../../checks/regex.ts";

/** A text to match: an empty prefix or expression would match everything and is most likely a mistake. */
export function checkStringMatch(match: StringMatch, place: Place): void {
  const { case: how, value } = match.matchType;
  if (how === "prefix" && value === "") place.in("prefix").fault("field.invalid", "must not be empty");
  checkExpression(match, place);
}

/** Only what is wrong with a regular expression: every path has the empty prefix, and Envoy takes it. */
export function checkExpression({ matchType: { case: how, value } }: StringMatch, place: Place): void {
  if (how !== "regex") return;
  if (value === "") place.in("regex").fault("field.regex", "must not be empty");
  else place.in("regex").check("field.regex", regexFault(value));
}
