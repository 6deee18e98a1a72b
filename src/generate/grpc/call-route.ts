import { RE2JS } from "re2js";
import {
  type ActionInput,
  type FaultInput,
  type HashPolicyInput,
  type HeaderMatch,
  type MatchInput,
  NO_HEADER_CHANGES,
  type RetryInput,
  type RouteInput,
  type TextMatch,
} from "../../envoy/route/route-input.ts";

/** Where a route stands. */
export interface CallSite {
  /** What calls carry as `:authority`: the host and port that are dialled. */
  readonly authority: string;
  /** Cluster of the service itself. */
  readonly cluster: string;
}

/**
 * A route as gRPC clients understand it, with the same meaning for calls; none where no call can match it. What gRPC does not know is left
 * out where it changes nothing that a client does (header changes, rewrites, mirrors), and never left in: some clients refuse a whole table
 * for one filter they do not know, others match a route as if a condition they do not know were not there.
 */
export function callRoutes(route: RouteInput, site: CallSite): readonly RouteInput[] {
  const match = callMatch(route.match, site);
  if (match === undefined) return [];
  const { action, fault } = callAction(route, site);
  return alternatives(match.headers).map((headers) => ({
    name: route.name,
    match: { ...match, headers },
    action,
    request: NO_HEADER_CHANGES,
    response: NO_HEADER_CHANGES,
    cors: undefined,
    fault,
    statPrefix: "",
    operation: "",
    origin: route.origin,
  }));
}

/** More than this many unwanted headers in one rule are left as they are: each doubles the routes. */
const MOST_ALTERNATIVES = 8;

/**
 * An unwanted header may also be missing. Envoy can be told so within one condition; most gRPC clients take a missing header as a mismatch,
 * inverted or not, so it takes a route of its own.
 */
function alternatives(headers: readonly HeaderMatch[]): readonly (readonly HeaderMatch[])[] {
  return headers.reduce<readonly (readonly HeaderMatch[])[]>(
    (all, header) => {
      const unwanted = header.invert && header.match !== undefined && all.length < MOST_ALTERNATIVES;
      const either = unwanted ? [{ ...header, match: undefined }, header] : [header];
      return all.flatMap((before) => either.map((one) => [...before, one]));
    },
    [[]],
  );
}

/** Calls have no query and no validated token: what asks for either matches nothing. Pseudo headers are known beforehand. */
function callMatch(match: MatchInput, { authority }: CallSite): MatchInput | undefined {
  if (match.queryParams.length > 0 || match.claims.some(({ invert }) => !invert)) return undefined;
  const known: Readonly<Record<string, string>> = { ":method": "POST", ":scheme": "http", ":authority": authority };
  const headers: HeaderMatch[] = [];
  for (const header of match.headers) {
    const value = known[header.name];
    if (value === undefined) headers.push(header);
    else if (matchesText(header.match, value) === header.invert) return undefined;
  }
  return { ...match, headers, claims: [] };
}

function matchesText(match: TextMatch | undefined, value: string): boolean {
  switch (match?.kind) {
    case undefined:
      return true;
    case "exact":
      return match.value === value;
    case "prefix":
      return value.startsWith(match.value);
    case "regex":
      return RE2JS.matches(match.value, value);
  }
}

/** gRPC changes no headers. */
const callDestination = (cluster: string, weight: number) => ({
  cluster,
  weight,
  request: NO_HEADER_CHANGES,
  response: NO_HEADER_CHANGES,
  hostRewrite: undefined,
});

/** gRPC can only forward. What should be answered without a server is aborted with the same status, which a client sees as it would behind a proxy. */
function callAction(route: RouteInput, site: CallSite): { readonly action: ActionInput; readonly fault: FaultInput | undefined } {
  const { action } = route;
  if (action.kind !== "route") {
    const code = action.kind === "redirect" ? action.code : action.status;
    const destination = callDestination(site.cluster, 0);
    return {
      action: {
        kind: "route",
        destinations: [destination],
        timeoutMs: 0,
        retry: undefined,
        rewrite: undefined,
        mirrors: [],
        hashPolicies: [],
      },
      fault: { delay: undefined, abort: { status: { kind: "http", code }, share: { numerator: 100, of: "hundred" } } },
    };
  }
  const destinations = action.destinations.map(({ cluster, weight }) => callDestination(cluster, weight));
  return {
    action: {
      kind: "route",
      destinations,
      timeoutMs: action.timeoutMs,
      ...(action.timeoutMs > 0 && { maxStreamMs: action.timeoutMs }),
      retry: callRetry(action.retry),
      rewrite: undefined,
      mirrors: [],
      hashPolicies: distinct(action.hashPolicies.flatMap(callHash)),
    },
    fault: callFault(route.fault),
  };
}

/** Conditions that gRPC knows (gRFC A44). */
const RETRY_ON: ReadonlySet<string> = new Set(["cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"]);

function callRetry(retry: RetryInput | undefined): RetryInput | undefined {
  const retryOn = (retry?.retryOn ?? "").split(",").filter((condition) => RETRY_ON.has(condition));
  if (retry === undefined || retryOn.length === 0) return undefined;
  return {
    attempts: retry.attempts,
    retryOn: retryOn.join(","),
    backOffMs: retry.backOffMs,
    perTryTimeoutMs: undefined,
    statusCodes: [],
    otherLocalities: false,
    avoidPreviousHosts: false,
  };
}

/** Headers are the same everywhere. The client's address is what its channel stands for; cookies and queries calls do not have. */
function callHash(policy: HashPolicyInput): readonly HashPolicyInput[] {
  if (policy.kind === "header") return [policy];
  return policy.kind === "sourceIp" ? [{ kind: "grpcChannel" }] : [];
}

/** Weighted destinations each have theirs, and mostly the same. */
const distinct = (policies: readonly HashPolicyInput[]): readonly HashPolicyInput[] => [
  ...new Map(policies.map((policy) => [JSON.stringify(policy), policy])).values(),
];

/** An abort without a share aborts nothing, and clients refuse it. */
function callFault(fault: FaultInput | undefined): FaultInput | undefined {
  const abort = fault?.abort?.share === undefined ? undefined : fault.abort;
  return fault?.delay === undefined && abort === undefined ? undefined : { delay: fault?.delay, abort };
}
