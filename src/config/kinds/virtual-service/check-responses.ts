import type {
  HTTPDirectResponse,
  HTTPMatchRequest,
  HTTPRedirect,
  HTTPRewrite,
  RegexRewrite,
} from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { lineFault } from "../../checks/header.ts";
import type { Place } from "../../checks/place.ts";
import { portFault } from "../../checks/port.ts";
import { regexFault } from "../../checks/regex.ts";
import { httpStatusFault } from "./http-status.ts";

const MOST_BODY_BYTES = 1024 * 1024;
const LARGE_BODY_BYTES = 100 * 1024;

/** A redirect instead of a route. */
export function checkRedirect(redirect: HTTPRedirect, matches: readonly HTTPMatchRequest[], place: Place): void {
  const texts = [redirect.uri, redirect.authority, redirect.scheme, redirect.prefixRewrite];
  if (texts.every((text) => text === "") && redirect.redirectPort.case === undefined)
    place.fault("field.required", "say what changes: uri, prefixRewrite, authority, scheme or port");
  for (const name of ["uri", "authority", "prefixRewrite"] as const) place.in(name).check("field.invalid", lineFault(redirect[name]));
  if (redirect.redirectCode !== 0 && (redirect.redirectCode < 300 || redirect.redirectCode > 399)) {
    place.in("redirectCode").fault("field.range", `${redirect.redirectCode} is not a redirect status from 300 to 399`);
  }
  if (redirect.scheme !== "" && redirect.scheme !== "http" && redirect.scheme !== "https")
    place.in("scheme").fault("field.invalid", "must be http or https");
  const port = redirect.redirectPort.case === "port" ? redirect.redirectPort.value : undefined;
  if (port === 0) place.in("port").fault("field.ineffective", "port 0 leaves the port as it is");
  else if (port !== undefined) place.in("port").check("field.port", portFault(port));
  if (redirect.prefixRewrite === "") return;
  if (redirect.uri !== "") place.in("prefixRewrite").fault("field.conflict", "cannot be combined with uri");
  if (matches.some((match) => match.uri !== undefined && match.uri.matchType.case !== "prefix")) {
    place.in("prefixRewrite").fault("field.conflict", "only a matched prefix can be rewritten: match uri by prefix");
  }
}

/** An answer given without asking any service. Large bodies are held by every proxy. */
export function checkDirectResponse(response: HTTPDirectResponse, place: Place): void {
  place.in("status").check("field.range", httpStatusFault(response.status));
  const body = response.body?.specifier;
  const size = body?.case === "string" ? Buffer.byteLength(body.value) : body?.case === "bytes" ? body.value.length : 0;
  if (size > MOST_BODY_BYTES) place.in("body").fault("field.range", "must have at most 1 MiB");
  else if (size > LARGE_BODY_BYTES)
    place.in("body").fault("field.ineffective", "a body over 100 KiB is sent to every proxy and makes updates slow");
}

/** Changes to path and authority before forwarding. */
export function checkRewrite(rewrite: HTTPRewrite, place: Place): void {
  if (rewrite.uri !== "" && rewrite.uriRegexRewrite !== undefined)
    place.in("uriRegexRewrite").fault("field.conflict", "cannot be combined with uri");
  if (rewrite.uri === "" && rewrite.authority === "" && rewrite.uriRegexRewrite === undefined)
    place.fault("field.required", "give uri, uriRegexRewrite or authority");
  for (const name of ["uri", "authority"] as const) place.in(name).check("field.invalid", lineFault(rewrite[name]));
  if (rewrite.uriRegexRewrite !== undefined) checkRegexRewrite(rewrite.uriRegexRewrite, place.in("uriRegexRewrite"));
}

/** A rewrite of the path by regular expression and substitution. */
export function checkRegexRewrite(rewrite: RegexRewrite, place: Place): void {
  if (rewrite.match === "" || rewrite.rewrite === "") place.fault("field.required", "needs both match and rewrite");
  if (rewrite.match !== "") place.in("match").check("field.regex", regexFault(rewrite.match));
}
