import { RE2JS } from "re2js";
import type { HeaderMatcher, Route, RouteMatch, VirtualHost } from "../../src/gen/envoy/config/route/v3/route_components_pb.js";
import type { RouteConfiguration } from "../../src/gen/envoy/config/route/v3/route_pb.js";
import type { StringMatcher } from "../../src/gen/envoy/type/matcher/v3/string_pb.js";
import type { HttpCall } from "./simulate.ts";

/** A request as routes see it. */
export interface Request extends HttpCall {
  readonly path: string;
  readonly scheme: string;
}

/** Exact domains first, then the longest `*.suffix`, then the longest `prefix.*`, then `*`. */
export function matchVirtualHost(table: RouteConfiguration, authority: string): VirtualHost | undefined {
  const host = (table.ignorePortInHostMatching ? authority.replace(/:\d+$/, "") : authority).toLowerCase();
  const ranked = table.virtualHosts.map((one) => ({
    one,
    rank: Math.max(-1, ...one.domains.map((domain) => domainRank(domain.toLowerCase(), host))),
  }));
  const best = ranked.reduce<(typeof ranked)[number] | undefined>(
    (first, next) => (next.rank > (first?.rank ?? -1) ? next : first),
    undefined,
  );
  return best?.one;
}

function domainRank(domain: string, host: string): number {
  if (domain === host) return 3_000;
  if (domain === "*") return 0;
  if (domain.startsWith("*") && host.length > domain.length - 1 && host.endsWith(domain.slice(1))) return 2_000 + domain.length;
  return domain.endsWith("*") && host.length > domain.length - 1 && host.startsWith(domain.slice(0, -1)) ? 1_000 + domain.length : -1;
}

/** The first route that takes the request. */
export const matchRoute = (host: VirtualHost, request: Request): Route | undefined =>
  host.routes.find(({ match }) => match !== undefined && takes(match, request));

function takes(match: RouteMatch, request: Request): boolean {
  const [path = "", query = ""] = request.path.split("?", 2);
  const parameters = new URLSearchParams(query);
  return (
    takesPath(match, path) &&
    match.headers.every((header) => takesHeader(header, headerOf(request, header.name))) &&
    match.queryParameters.every(({ name, queryParameterMatchSpecifier: wanted }) => {
      const value = parameters.get(name);
      return value !== null && (wanted.case !== "stringMatch" || takesText(wanted.value, value));
    })
  );
}

function takesPath({ pathSpecifier, caseSensitive }: RouteMatch, path: string): boolean {
  const fold = (text: string): string => (caseSensitive === false ? text.toLowerCase() : text);
  switch (pathSpecifier.case) {
    case "path":
      return fold(path) === fold(pathSpecifier.value);
    case "prefix":
      return fold(path).startsWith(fold(pathSpecifier.value));
    case "pathSeparatedPrefix":
      return `${fold(path)}/`.startsWith(`${fold(pathSpecifier.value)}/`);
    case "safeRegex":
      return RE2JS.compile(pathSpecifier.value.regex).matches(path);
    default:
      return false;
  }
}

function headerOf({ headers = {}, host, method = "GET", path, scheme }: Request, name: string): string | undefined {
  const pseudo: Readonly<Record<string, string>> = { ":authority": host, ":method": method, ":path": path, ":scheme": scheme };
  return pseudo[name] ?? headers[name.toLowerCase()];
}

function takesHeader(
  { headerMatchSpecifier: wanted, invertMatch, treatMissingHeaderAsEmpty }: HeaderMatcher,
  found: string | undefined,
): boolean {
  const value = found ?? (treatMissingHeaderAsEmpty ? "" : undefined);
  if (wanted.case === "presentMatch") return (found !== undefined) === (wanted.value !== invertMatch);
  if (wanted.case !== "stringMatch") return (found !== undefined) !== invertMatch;
  return value === undefined ? false : takesText(wanted.value, value) !== invertMatch;
}

function takesText({ matchPattern, ignoreCase }: StringMatcher, text: string): boolean {
  const fold = (part: string): string => (ignoreCase ? part.toLowerCase() : part);
  switch (matchPattern.case) {
    case "exact":
      return fold(text) === fold(matchPattern.value);
    case "prefix":
      return fold(text).startsWith(fold(matchPattern.value));
    case "suffix":
      return fold(text).endsWith(fold(matchPattern.value));
    case "contains":
      return fold(text).includes(fold(matchPattern.value));
    case "safeRegex":
      return RE2JS.compile(matchPattern.value.regex).matches(text);
    default:
      return false;
  }
}
