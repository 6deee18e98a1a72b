import { clone, create } from "@bufbuild/protobuf";
import {
  type HTTPMatchRequest,
  HTTPMatchRequestSchema,
  type HTTPRoute,
  HTTPRouteSchema,
  type StringMatch,
} from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";

/**
 * Puts a delegate's rules in place of the rule that names it (Istio's reference, VirtualService.delegate): matches are joined pair by
 * pair, a rule with a match that the delegating rule cannot let through is left out, and settings the delegate leaves open come from the
 * delegating rule.
 */
export function mergeDelegate(root: HTTPRoute, delegates: readonly HTTPRoute[]): readonly HTTPRoute[] {
  const merged: HTTPRoute[] = [];
  for (const delegate of delegates) {
    const match = joinMatches(root.match, delegate.match);
    if (match === undefined) continue;
    merged.push(mergeRule(root, delegate, match));
  }
  return merged;
}

function mergeRule(root: HTTPRoute, delegate: HTTPRoute, match: readonly HTTPMatchRequest[]): HTTPRoute {
  const result = create(HTTPRouteSchema, { ...clone(HTTPRouteSchema, delegate), match: [...match] });
  result.name = root.name !== "" && delegate.name !== "" ? `${root.name}-${delegate.name}` : root.name || delegate.name;
  if (delegate.rewrite === undefined && root.rewrite !== undefined) result.rewrite = root.rewrite;
  if (delegate.directResponse === undefined && root.directResponse !== undefined) result.directResponse = root.directResponse;
  if (delegate.timeout === undefined && root.timeout !== undefined) result.timeout = root.timeout;
  if (delegate.retries === undefined && root.retries !== undefined) result.retries = root.retries;
  if (delegate.fault === undefined && root.fault !== undefined) result.fault = root.fault;
  if (delegate.mirror === undefined && root.mirror !== undefined) result.mirror = root.mirror;
  if (delegate.mirrorPercent === undefined && root.mirrorPercent !== undefined) result.mirrorPercent = root.mirrorPercent;
  if (delegate.mirrorPercentage === undefined && root.mirrorPercentage !== undefined) result.mirrorPercentage = root.mirrorPercentage;
  if (delegate.mirrors.length === 0) result.mirrors = root.mirrors;
  if (delegate.corsPolicy === undefined && root.corsPolicy !== undefined) result.corsPolicy = root.corsPolicy;
  if (delegate.headers === undefined && root.headers !== undefined) result.headers = root.headers;
  return result;
}

/** Every pair of matches that can hold at once; undefined where some match of the delegate is in none. An empty list on one side means "anything". */
function joinMatches(root: readonly HTTPMatchRequest[], delegate: readonly HTTPMatchRequest[]): readonly HTTPMatchRequest[] | undefined {
  if (root.length === 0) return delegate;
  if (delegate.length === 0) return root;
  const joined = delegate.map((inner) => root.filter((outer) => !contradicts(outer, inner)).map((outer) => joinMatch(outer, inner)));
  return joined.some((pairs) => pairs.length === 0) ? undefined : joined.flat();
}

function joinMatch(outer: HTTPMatchRequest, inner: HTTPMatchRequest): HTTPMatchRequest {
  const joined = clone(HTTPMatchRequestSchema, inner);
  joined.name = outer.name !== "" && inner.name !== "" ? `${outer.name}-${inner.name}` : outer.name || inner.name;
  for (const field of ["uri", "scheme", "method", "authority"] as const) {
    const value = inner[field] ?? outer[field];
    if (value !== undefined) joined[field] = value;
  }
  joined.headers = { ...outer.headers, ...inner.headers };
  joined.withoutHeaders = { ...outer.withoutHeaders, ...inner.withoutHeaders };
  joined.queryParams = { ...outer.queryParams, ...inner.queryParams };
  joined.sourceLabels = { ...outer.sourceLabels, ...inner.sourceLabels };
  joined.port = inner.port || outer.port;
  joined.gateways = inner.gateways.length > 0 ? inner.gateways : outer.gateways;
  joined.sourceNamespace = inner.sourceNamespace || outer.sourceNamespace;
  joined.statPrefix = inner.statPrefix || outer.statPrefix;
  return joined;
}

function contradicts(outer: HTTPMatchRequest, inner: HTTPMatchRequest): boolean {
  const texts = (["uri", "scheme", "method", "authority"] as const).some((field) => textContradicts(outer[field], inner[field]));
  const maps = (["headers", "withoutHeaders", "queryParams"] as const).some((field) =>
    Object.entries(outer[field]).some(([name, value]) => textContradicts(value, inner[field][name])),
  );
  const labels = Object.entries(outer.sourceLabels).some(([name, value]) => (inner.sourceLabels[name] ?? value) !== value);
  const port = outer.port !== 0 && inner.port !== 0 && outer.port !== inner.port;
  const namespace = outer.sourceNamespace !== "" && outer.sourceNamespace !== inner.sourceNamespace;
  const gateways = outer.gateways.length > 0 && inner.gateways.some((gateway) => !outer.gateways.includes(gateway));
  return texts || maps || labels || port || namespace || gateways || outer.ignoreUriCase !== inner.ignoreUriCase;
}

/** The inner match must be at least as narrow as the outer one; two regular expressions cannot be compared and therefore contradict. */
function textContradicts(outer: StringMatch | undefined, inner: StringMatch | undefined): boolean {
  if (outer === undefined || inner === undefined) return false;
  const a = outer.matchType;
  const b = inner.matchType;
  if (a.case === undefined || b.case === undefined) return false;
  if (a.case === "regex" || b.case === "regex") return true;
  if (a.case === "exact") return b.case !== "exact" || a.value !== b.value;
  return !b.value.startsWith(a.value);
}
