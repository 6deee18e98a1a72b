import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import { ENDPOINT_TYPE, EXTENSION_CONFIG_TYPE, ROUTE_TYPE, SCOPED_ROUTE_TYPE, SECRET_TYPE } from "../wire/type-urls.ts";
import { type NameSets, NO_NAMES } from "./name-sets.ts";
import type { Wanted } from "./provider.ts";

/*
 * The rules of the xDS protocol about who wants what and what a request says about the response before it. Pure: one function a variant.
 * Rules are cited by section of https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol
 */

/** What a stream wants of one type. */
export interface Subscription extends Wanted {
  /** A name (or `*`) was subscribed to on this stream: naming nothing no longer means everything. */
  readonly explicit: boolean;
}

/** The nonce of the response that is not yet answered, and of the last one sent. */
export interface Nonces {
  readonly inFlight: string | undefined;
  readonly last: string | undefined;
}

export interface Judgement {
  readonly subscription: Subscription;
  /** `none`: says nothing about a response. `stale`: about one that was superseded. */
  readonly verdict: "none" | "ack" | "nack" | "stale";
  /** This is the first request for the type: it is answered even with nothing, unless it says what it holds. */
  readonly first: boolean;
  /** Names that must be answered even if the client was sent the same before. */
  readonly asked: readonly string[];
  /** Names the client no longer holds. */
  readonly dropped: readonly string[];
  /** The client left `*`: it holds only what it names. */
  readonly leftWildcard: boolean;
}

export interface JudgeInput {
  readonly current: Subscription | undefined;
  readonly request: DiscoveryRequest;
  readonly nonces: Nonces;
  readonly names: NameSets;
}

const WILDCARD = "*";

/**
 * Types that are only ever asked for by name. All others, Istio's own included, give everything to a client that names nothing: virtual hosts too,
 * of which Envoy names none unless it is set up to ask on demand.
 */
const NAMED_ONLY: ReadonlySet<string> = new Set([ENDPOINT_TYPE, ROUTE_TYPE, SCOPED_ROUTE_TYPE, SECRET_TYPE, EXTENSION_CONFIG_TYPE]);

/** The same list where it has none: those of a thousand names are shared. */
const withoutWildcard = (names: readonly string[]): readonly string[] =>
  names.includes(WILDCARD) ? names.filter((name) => name !== WILDCARD) : names;

const NONE: readonly string[] = [];
const NOTHING: Subscription = { wildcard: false, names: NO_NAMES, explicit: false };

/** State of the world: each request carries the whole list of names. */
export function judgeSotw({ current, request, nonces, names }: JudgeInput): Judgement {
  // "Resource updates": a request about anything but the latest response is not answered; the client will repeat what matters.
  if (current !== undefined && request.nonce !== "" && request.nonce !== nonces.last) return stale(current);
  const first = current === undefined || request.nonce === "";
  const before = first ? NOTHING : current;
  const listed = withoutWildcard(request.names);
  const explicit = before.explicit || request.names.length > 0;
  // "How the client specifies what resources to return": naming nothing is `*`, unless a name was given before on this stream.
  const wildcard = explicit ? listed.length < request.names.length : !NAMED_ONLY.has(request.typeUrl);
  const wanted = names.of(listed);
  return {
    subscription: sameAs(current, { wildcard, names: wanted, explicit }),
    verdict: verdictOf(request, nonces),
    first,
    asked: wanted === before.names ? [] : listed.filter((name) => !before.names.names.has(name)),
    dropped: wanted === before.names ? [] : [...before.names.names].filter((name) => !wanted.names.has(name)),
    leftWildcard: before.wildcard && !wildcard,
  };
}

/** Delta: each request carries changes to the list. They hold whatever the nonce says; only the verdict depends on it. */
export function judgeDelta({ current, request, nonces, names }: JudgeInput): Judgement {
  if (current !== undefined && request.names.length + request.unsubscribe.length === 0)
    return { ...unchanged(current), verdict: verdictOf(request, nonces) };
  const before = current ?? NOTHING;
  const first = current === undefined;
  const added = withoutWildcard(request.names);
  const taken = withoutWildcard(request.unsubscribe);
  const explicit = before.explicit || request.names.length > 0;
  // "How the client specifies…": a client that never named anything has `*`; naming something adds to it, only unsubscribing `*` ends it.
  const legacy = first && !explicit && !NAMED_ONLY.has(request.typeUrl);
  const joins = request.names.length > added.length;
  const leaves = request.unsubscribe.length > taken.length;
  const wildcard = joins || ((before.wildcard || legacy) && !leaves);
  const wanted = names.edit(before.names, added, taken);
  const isAdded = new Set(taken.length === 0 ? NONE : added); // A client says how long both lists are.
  const gone = taken.filter((name) => before.names.names.has(name) && !isAdded.has(name));
  return {
    subscription: sameAs(current, { wildcard, names: wanted, explicit }),
    verdict: verdictOf(request, nonces),
    first,
    // discovery.proto: everything in resource_names_subscribe is answered, even what the client was sent before. And a name left while
    // under `*` is answered too, since the client cannot know whether `*` covers it.
    asked: wildcard ? [...added, ...gone] : added,
    dropped: wildcard ? [] : gone,
    leftWildcard: before.wildcard && !wildcard,
  };
}

function verdictOf(request: DiscoveryRequest, nonces: Nonces): Judgement["verdict"] {
  if (request.nonce === "") return "none";
  if (request.nonce === nonces.inFlight) return request.error === undefined ? "ack" : "nack";
  return request.nonce === nonces.last ? "none" : "stale";
}

const unchanged = (current: Subscription): Omit<Judgement, "verdict"> => ({
  subscription: current,
  first: false,
  asked: NONE,
  dropped: NONE,
  leftWildcard: false,
});

const stale = (current: Subscription): Judgement => ({ ...unchanged(current), verdict: "stale" });

function sameAs(current: Subscription | undefined, next: Subscription): Subscription {
  const same =
    current !== undefined && current.wildcard === next.wildcard && current.names === next.names && current.explicit === next.explicit;
  return same ? current : next;
}
