import { quote } from "../../../base/quote.ts";
import type { CorsPolicy, StringMatch } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { durationFault, wholeSecondsFault } from "../../checks/duration.ts";
import { headerNameFault } from "../../checks/header.ts";
import type { Place } from "../../checks/place.ts";
import { regexFault } from "../../checks/regex.ts";

const METHODS: ReadonlySet<string> = new Set(["*", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"]);

/** Who may call from another origin, and how. */
export function checkCors(cors: CorsPolicy, place: Place): void {
  for (const [index, origin] of cors.allowOrigins.entries()) checkOrigin(origin, place.in("allowOrigins", index));
  for (const [index, method] of cors.allowMethods.entries()) {
    if (!METHODS.has(method)) place.in("allowMethods", index).fault("field.invalid", `${quote(method)} is not an HTTP method`);
  }
  for (const name of ["allowHeaders", "exposeHeaders"] as const) {
    for (const [index, header] of cors[name].entries()) place.in(name, index).check("field.invalid", headerNameFault(header));
  }
  if (cors.maxAge === undefined) return;
  place.in("maxAge").check("field.range", durationFault(cors.maxAge));
  place.in("maxAge").check("field.range", wholeSecondsFault(cors.maxAge));
}

function checkOrigin(origin: StringMatch, place: Place): void {
  const { case: how, value } = origin.matchType;
  if (how === undefined || value === "") place.fault("field.invalid", "an allowed origin needs a text to match");
  else if (how === "regex") place.in("regex").check("field.regex", regexFault(value));
}
