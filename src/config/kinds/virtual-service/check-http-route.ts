import type {
  HTTPMirrorPolicy,
  HTTPRoute,
  HTTPRouteDestination,
  RouteDestination,
} from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { checkDestination } from "../../checks/destination.ts";
import { durationFault } from "../../checks/duration.ts";
import { isAuthorityHeader } from "../../checks/header.ts";
import { checkHttpRetry } from "../../checks/http-retry.ts";
import { percentFault } from "../../checks/percent.ts";
import type { Place } from "../../checks/place.ts";
import { checkCors } from "./check-cors.ts";
import { checkFault } from "./check-fault.ts";
import { checkHeaders } from "./check-headers.ts";
import { checkHttpMatch } from "./check-http-match.ts";
import { checkDirectResponse, checkRedirect, checkRewrite } from "./check-responses.ts";

/** What the rules of one route depend on besides it. */
export interface RouteContext {
  /** The VirtualService has no hosts: others include its routes. */
  readonly isDelegate: boolean;
  /** The route was made from a Gateway API route. */
  readonly gatewayApi: boolean;
}

/** One HTTP route: what it matches, what happens to the request, where it goes. */
export function checkHttpRoute(route: HTTPRoute, context: RouteContext, place: Place): void {
  checkActions(route, context, place);
  for (const [index, match] of route.match.entries()) checkHttpMatch(match, place.in("match", index));
  if (route.headers !== undefined) checkHeaders(route.headers, place.in("headers"));
  if (route.corsPolicy !== undefined) checkCors(route.corsPolicy, place.in("corsPolicy"));
  if (route.fault !== undefined) checkFault(route.fault, place.in("fault"));
  checkMirrors(route, place);
  if (route.redirect !== undefined) checkRedirect(route.redirect, route.match, place.in("redirect"));
  if (route.directResponse !== undefined) checkDirectResponse(route.directResponse, place.in("directResponse"));
  if (route.retries !== undefined) checkHttpRetry(route.retries, place.in("retries"));
  if (route.rewrite !== undefined) checkRewrite(route.rewrite, place.in("rewrite"));
  checkAuthority(route, place);
  checkHttpDestinations(route.route, context.gatewayApi, place.in("route"));
  if (route.timeout !== undefined) place.in("timeout").check("field.range", durationFault(route.timeout));
}

/** A route does exactly one thing: it forwards, redirects, answers itself or delegates. */
function checkActions(route: HTTPRoute, context: RouteContext, place: Place): void {
  if (route.delegate !== undefined && !context.isDelegate) {
    for (const name of ["redirect", "directResponse"] as const)
      if (route[name] !== undefined) place.in(name).fault("field.conflict", "a route that delegates does nothing else");
    if (route.route.length > 0) place.in("route").fault("field.conflict", "a route that delegates does nothing else");
    return;
  }
  if (route.delegate !== undefined) place.in("delegate").fault("field.conflict", "a delegate cannot delegate again");
  const answer = route.redirect !== undefined ? "redirect" : route.directResponse !== undefined ? "directResponse" : undefined;
  if (answer === undefined) {
    if (route.route.length === 0) place.fault("field.required", "give route, redirect or directResponse");
  } else {
    if (route.route.length > 0) place.in("route").fault("field.conflict", `cannot be combined with ${answer}`);
    for (const name of ["fault", "rewrite"] as const)
      if (route[name] !== undefined) place.in(name).fault("field.conflict", `cannot be combined with ${answer}`);
    if (answer === "redirect" && route.directResponse !== undefined)
      place.in("directResponse").fault("field.conflict", "cannot be combined with redirect");
  }
  if (route.mirror !== undefined && route.mirrors.length > 0) place.in("mirrors").fault("field.conflict", "cannot be combined with mirror");
}

function checkMirrors(route: HTTPRoute, place: Place): void {
  if (route.mirror !== undefined) checkDestination(route.mirror, place.in("mirror"));
  if (route.mirrorPercent !== undefined) {
    place.in("mirrorPercent").fault("field.deprecated", "use mirrorPercentage");
    place.in("mirrorPercent").check("field.range", percentFault(route.mirrorPercent));
  }
  if (route.mirrorPercentage !== undefined) place.in("mirrorPercentage").check("field.range", percentFault(route.mirrorPercentage.value));
  for (const [index, mirror] of route.mirrors.entries()) checkMirror(mirror, place.in("mirrors", index));
}

function checkMirror(mirror: HTTPMirrorPolicy, place: Place): void {
  if (mirror.destination === undefined) place.in("destination").fault("field.required", "must be set");
  else checkDestination(mirror.destination, place.in("destination"));
  if (mirror.percentage !== undefined) place.in("percentage").check("field.range", percentFault(mirror.percentage.value));
}

/** The authority can be rewritten in one way only. */
function checkAuthority(route: HTTPRoute, place: Place): void {
  const names = Object.keys(route.headers?.request?.set ?? {}).filter(isAuthorityHeader);
  const at = place.in("headers", "request", "set");
  if (names.length > 1) at.fault("field.conflict", "the authority is set twice");
  if (names.length > 0 && (route.rewrite?.authority ?? "") !== "") at.fault("field.conflict", "the authority is set here and by rewrite");
}

/** Weighted HTTP destinations, each with its own changes to headers. */
function checkHttpDestinations(destinations: readonly HTTPRouteDestination[], gatewayApi: boolean, place: Place): void {
  checkDestinations(destinations, gatewayApi, place);
  for (const [index, one] of destinations.entries()) if (one.headers !== undefined) checkHeaders(one.headers, place.in(index, "headers"));
}

/** Weighted destinations of any route. A single one needs no weight; those made from Gateway API may stand for backends that are not there. */
export function checkDestinations(
  destinations: readonly (HTTPRouteDestination | RouteDestination)[],
  gatewayApi: boolean,
  place: Place,
): void {
  let total = 0;
  for (const [index, one] of destinations.entries()) {
    if (one.destination === undefined) place.in(index, "destination").fault("field.required", "must be set");
    else if (!gatewayApi) checkDestination(one.destination, place.in(index, "destination"));
    if (one.weight < 0) place.in(index, "weight").fault("field.range", "must not be negative");
    total += one.weight;
  }
  if (destinations.length > 1 && total === 0) place.fault("field.invalid", "the weights add up to 0");
  if (total > LARGEST_TOTAL) place.fault("field.range", `the weights add up to ${total}; Envoy takes at most ${LARGEST_TOTAL}`);
}

/** Envoy refuses the whole route table otherwise. */
const LARGEST_TOTAL = 4_294_967_295;
