import { quote } from "../../../base/quote.ts";
import {
  EnvoyFilter_ApplyTo as ApplyTo,
  EnvoyFilter_PatchContext as Context,
  type EnvoyFilter_ListenerMatch_FilterMatch as FilterMatch,
  type EnvoyFilter_EnvoyConfigObjectMatch as ObjectMatch,
} from "../../../gen/istio/networking/v1alpha3/envoy_filter_pb.js";
import type { Place } from "../../checks/place.ts";
import { portFault } from "../../checks/port.ts";
import { syntaxFault } from "../../checks/regex.ts";
import { DEPRECATED_FILTER_NAMES } from "./filter-names.ts";

const LONGEST_VERSION = 1024;
const CONNECTION_MANAGER = "envoy.filters.network.http_connection_manager";
const LISTENER_PARTS: ReadonlySet<ApplyTo> = new Set([
  ApplyTo.LISTENER,
  ApplyTo.FILTER_CHAIN,
  ApplyTo.NETWORK_FILTER,
  ApplyTo.HTTP_FILTER,
  ApplyTo.LISTENER_FILTER,
]);
const ROUTE_PARTS: ReadonlySet<ApplyTo> = new Set([ApplyTo.ROUTE_CONFIGURATION, ApplyTo.VIRTUAL_HOST, ApplyTo.HTTP_ROUTE]);

/** What a patch applies to: the match must speak of the same kind of thing as applyTo. */
export function checkMatch(match: ObjectMatch, applyTo: ApplyTo, place: Place): void {
  checkProxy(match, place.in("proxy"));
  const objects = match.objectTypes;
  if (objects.case === undefined) return;
  const isWaypoint = match.context === Context.WAYPOINT;
  if (isWaypoint !== (objects.case === "waypoint"))
    place.in(objects.case).fault("field.conflict", "context WAYPOINT and a waypoint match belong together");
  else if (!isWaypoint && objects.case !== wantedMatch(applyTo))
    place.in(objects.case).fault(misses(applyTo), `applyTo ${ApplyTo[applyTo]} takes no ${objects.case} match`);
  else if (objects.case === "listener" && objects.value.filterChain?.filter !== undefined)
    checkFilter(objects.value.filterChain.filter, applyTo, place.in("listener", "filterChain", "filter"));
  else if (objects.case === "waypoint" && objects.value.portNumber !== 0)
    place.in("waypoint", "portNumber").check("field.port", portFault(objects.value.portNumber));
}

/** Istio takes any match beside what is no part of a listener's chains, of routes or of clusters, and does not look at it. */
const misses = (applyTo: ApplyTo): "field.conflict" | "field.ineffective" =>
  applyTo === ApplyTo.LISTENER_FILTER || wantedMatch(applyTo) === undefined ? "field.ineffective" : "field.conflict";

function wantedMatch(applyTo: ApplyTo): ObjectMatch["objectTypes"]["case"] {
  if (LISTENER_PARTS.has(applyTo)) return "listener";
  if (ROUTE_PARTS.has(applyTo)) return "routeConfiguration";
  return applyTo === ApplyTo.CLUSTER ? "cluster" : undefined;
}

function checkProxy(match: ObjectMatch, place: Place): void {
  const version = match.proxy?.proxyVersion ?? "";
  if (version.length > LONGEST_VERSION)
    place.in("proxyVersion").fault("field.ineffective", `an expression over ${LONGEST_VERSION} characters is not used`);
  else place.in("proxyVersion").check("field.regex", syntaxFault(version));
}

function checkFilter(filter: FilterMatch, applyTo: ApplyTo, place: Place): void {
  if (filter.name === "") {
    place.in("name").fault("field.required", "must be set");
    return;
  }
  if (applyTo === ApplyTo.LISTENER || applyTo === ApplyTo.FILTER_CHAIN)
    place.fault("field.ineffective", `applyTo ${ApplyTo[applyTo]} does not look at filters`);
  warnDeprecated(filter.name, place.in("name"));
  if (filter.subFilter === undefined) return;
  const at = place.in("subFilter");
  if (applyTo !== ApplyTo.HTTP_FILTER) at.fault(misses(applyTo), `applyTo ${ApplyTo[applyTo]} does not look at HTTP filters`);
  if (filter.name !== CONNECTION_MANAGER && filter.name !== "envoy.http_connection_manager")
    at.fault("field.conflict", `only ${CONNECTION_MANAGER} has filters inside`);
  if (filter.subFilter.name === "") at.in("name").fault("field.required", "must be set");
  else warnDeprecated(filter.subFilter.name, at.in("name"));
}

function warnDeprecated(name: string, place: Place): void {
  const now = Object.hasOwn(DEPRECATED_FILTER_NAMES, name) ? DEPRECATED_FILTER_NAMES[name] : undefined;
  if (now !== undefined) place.fault("field.deprecated", `${quote(name)} is now named ${quote(now)}`);
}
