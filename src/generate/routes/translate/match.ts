import type { ClaimMatch, HeaderMatch, MatchInput, TextMatch } from "../../../envoy/route/route-input.ts";
import type { HTTPMatchRequest, StringMatch } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";

const CLAIM_PREFIX = "@request.auth.claims";

/** The match of a rule that names none. Case is left to Envoy's default, as there is nothing to compare. */
export const ANY_REQUEST: MatchInput = { path: undefined, caseSensitive: undefined, headers: [], queryParams: [], claims: [] };

export function translateMatch(match: HTTPMatchRequest): MatchInput {
  const wanted = Object.entries(match.headers);
  const unwanted = Object.entries(match.withoutHeaders);
  const headers: HeaderMatch[] = [
    ...wanted
      .filter(([name]) => !name.startsWith(CLAIM_PREFIX))
      .map(([name, value]) => ({ name, match: textOrPresent(value), invert: false })),
    ...unwanted
      .filter(([name]) => !name.startsWith(CLAIM_PREFIX))
      .map(([name, value]) => ({ name, match: textOrPresent(value), invert: true })),
    ...pseudoHeader(":method", match.method),
    ...pseudoHeader(":authority", match.authority),
    ...pseudoHeader(":scheme", match.scheme),
  ];
  return {
    path: match.uri === undefined ? undefined : textOf(match.uri),
    caseSensitive: !match.ignoreUriCase,
    headers,
    queryParams: Object.entries(match.queryParams).map(([name, value]) => ({ name, match: textOrPresent(value) })),
    claims: [...claimsOf(wanted, false), ...claimsOf(unwanted, true)],
  };
}

/** Whether nothing that comes after such a match can ever be reached. */
export function takesEverything(match: MatchInput): boolean {
  const anyPath =
    match.path === undefined ||
    (match.path.kind === "prefix" && match.path.value === "/") ||
    (match.path.kind === "regex" && match.path.value === ".*");
  return anyPath && match.headers.length === 0 && match.queryParams.length === 0 && match.claims.length === 0;
}

export function textOf(value: StringMatch): TextMatch | undefined {
  const { matchType } = value;
  return matchType.case === undefined ? undefined : { kind: matchType.case, value: matchType.value };
}

/** An empty match, or the regex `*` (kept for old configurations), asks only that the header is there. */
function textOrPresent(value: StringMatch): TextMatch | undefined {
  const text = textOf(value);
  return text?.kind === "regex" && text.value === "*" ? undefined : text;
}

function pseudoHeader(name: string, value: StringMatch | undefined): readonly HeaderMatch[] {
  return value === undefined ? [] : [{ name, match: textOf(value), invert: false }];
}

/** `@request.auth.claims.a.b` or `@request.auth.claims[a][b]`: the second form is for names with dots. */
function claimsOf(headers: readonly (readonly [string, StringMatch])[], invert: boolean): readonly ClaimMatch[] {
  return headers.flatMap(([name, value]) => {
    if (!name.startsWith(CLAIM_PREFIX)) return [];
    const rest = name.slice(CLAIM_PREFIX.length);
    const path = rest.startsWith("[")
      ? [...rest.matchAll(/\[([^\]]+)\]/g)].map(([, key = ""]) => key)
      : rest.split(".").filter((key) => key !== "");
    return [{ path, match: textOrPresent(value), invert }];
  });
}
