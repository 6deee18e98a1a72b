import type { HTTPMatchRequest, StringMatch, VirtualService } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { Place } from "../../checks/place.ts";

/** One way into a route: its conditions by name. No condition at all takes everything. */
interface Entry {
  readonly route: number;
  /** Index among the matches of the route, absent where the route has none. */
  readonly match: number | undefined;
  readonly uri: StringMatch | undefined;
  readonly ignoreCase: boolean;
  /** All other conditions, each as text that is equal where the condition is. */
  readonly others: ReadonlyMap<string, string>;
}

/** Each match is compared with all before it; beyond this many the advice would cost more than it is worth. */
const MOST_ENTRIES = 1000;

/** Warns of routes and matches that an earlier one leaves nothing for: routes are tried in order and the first match wins. */
export function warnUnreachable(spec: VirtualService, place: Place): void {
  for (const kind of ["http", "tls", "tcp"] as const) {
    const routes: readonly { readonly match: readonly object[] }[] = spec[kind];
    warnAmong(routes, place.in(kind));
  }
}

function warnAmong(routes: readonly { readonly match: readonly object[] }[], place: Place): void {
  const earlier: Entry[] = [];
  for (const [route, { match: matches }] of routes.entries()) {
    const entries = matches.length === 0 ? [entryOf(route, undefined, {})] : matches.map((match, index) => entryOf(route, index, match));
    if (earlier.length + entries.length > MOST_ENTRIES) return;
    for (const entry of entries) {
      const taker = earlier.find((other) => takesAll(other, entry));
      if (taker !== undefined) warn(entry, taker, place);
      else earlier.push(entry);
    }
  }
}

function warn(entry: Entry, taker: Entry, place: Place): void {
  const by = taker.match === undefined ? `route ${taker.route}, which matches everything,` : `match ${taker.match} of route ${taker.route}`;
  const at = entry.match === undefined ? place.in(entry.route) : place.in(entry.route, "match", entry.match);
  at.fault("route.unreachable", `is never used: ${by} takes all its traffic`);
}

function entryOf(route: number, match: number | undefined, conditions: object): Entry {
  const http = conditions as Partial<HTTPMatchRequest>;
  const others = new Map<string, string>();
  for (const [name, value] of Object.entries(conditions)) addConditions(others, name, value);
  return { route, match, uri: http.uri, ignoreCase: http.ignoreUriCase === true, others };
}

/** Names that say nothing about which traffic matches. */
const NO_CONDITION: ReadonlySet<string> = new Set(["$typeName", "$unknown", "name", "statPrefix", "uri", "ignoreUriCase"]);

function addConditions(into: Map<string, string>, name: string, value: unknown): void {
  if (NO_CONDITION.has(name) || value === undefined || value === "" || value === 0) return;
  if (Array.isArray(value)) {
    if (value.length > 0) into.set(name, JSON.stringify([...value].sort()));
  } else if (typeof value === "object" && value !== null && !("$typeName" in value)) {
    // A map: each entry is a condition of its own.
    for (const [key, one] of Object.entries(value)) into.set(`${name}/${key}`, JSON.stringify(one));
  } else into.set(name, JSON.stringify(value));
}

/** Whether all traffic that `later` matches also matches `earlier`. */
function takesAll(earlier: Entry, later: Entry): boolean {
  for (const [name, value] of earlier.others) if (later.others.get(name) !== value) return false;
  return uriTakesAll(earlier, later);
}

function uriTakesAll(earlier: Entry, later: Entry): boolean {
  const a = earlier.uri?.matchType;
  const b = later.uri?.matchType;
  if (a?.case === undefined) return true;
  if (b?.case === undefined) return a.case === "prefix" && a.value === "/";
  if (later.ignoreCase && !earlier.ignoreCase) return false;
  if (a.case === "regex") return b.case === "regex" && a.value === b.value;
  const [first, second] = earlier.ignoreCase ? [a.value.toLowerCase(), b.value.toLowerCase()] : [a.value, b.value];
  if (a.case === "exact") return b.case === "exact" && first === second;
  return first === "/" || (b.case !== "regex" && second.startsWith(first));
}
