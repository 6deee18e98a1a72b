import type { ProxyView } from "../model/proxy.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";

/** A set of resource names, interned: equal sets are the same object, so a thousand streams that subscribe to the same names hold one. */
export interface NameSet {
  readonly id: number;
  readonly names: ReadonlySet<string>;
}

/** What a stream wants of one type. */
export interface Wanted {
  readonly wildcard: boolean;
  readonly names: NameSet;
}

/**
 * Where resources of one type come from. `xds/` knows names and versions, not meaning: `bin/` fills the table of providers, and its order is
 * the order in which types are sent.
 */
export interface ResourceProvider {
  readonly typeUrl: string;
  /** Computes what `offered` will need in small steps; the caller may pause between steps so that no slice of work is long. */
  prepare(view: ProxyView, wanted: Wanted): Iterable<void>;
  /** Whether `offered` has all it needs and `prepare` nothing to do: told without working anything out. */
  isPrepared?(view: ProxyView, wanted: Wanted): boolean;
  /** What `offered` said last to the same question, if all behind that is as it was: told without working anything out. */
  standing?(view: ProxyView, wanted: Wanted): ResourceSet | undefined;
  /** What the proxy should hold now. The same object as long as nothing changed, and for all proxies that share it. */
  offered(view: ProxyView, wanted: Wanted): ResourceSet;
  /** Object keys that one resource was made from, for logs and `config_dump?why`. */
  provenance(view: ProxyView, name: string): readonly string[];
  /** A resource as it was before users changed it: what a client is served that refuses the changed one and has no other. */
  plain?(resource: Encoded): Encoded | undefined;
  /** Resources of another type that a client needs again after one of these was sent, although they did not change. */
  readonly companion?: Companion;
  /** Types whose responses in flight are waited for before resources of this type are added or changed: make before break. */
  readonly sendAfter?: readonly string[];
  /** Types that must be acknowledged before resources of this type are removed: they may still refer to them. */
  readonly removeAfter?: readonly string[];
  /**
   * The type whose resources these are parts of: a part is named `<whole>/<part>`. Clients ask for wholes only, so what is wanted of the parts are
   * those of the wholes that are subscribed to (`Wanted.names` are the wholes), and one who is given a whole anew has none of its parts.
   */
  readonly partOf?: string;
  /** Whether such a proxy asks for this type at all; where it is not said, every proxy does. */
  askedBy?(view: ProxyView): boolean;
  /** What it offers depends on more than the inputs (on who may have what now, say), so it is asked at each look. */
  readonly asksAnew?: boolean;
  /** Whether what it offers such a proxy is the very result of the last query it asks: where only that changed, nothing else is asked again. */
  isLastResult?(view: ProxyView): boolean;
  /** Served before others and out of a reserve of its own, so that it never waits behind large responses. */
  readonly urgent?: boolean;
}

/** Envoy keeps a changed EDS cluster warming until its assignment comes again: the assignment is the companion of the cluster. */
export interface Companion {
  readonly typeUrl: string;
  /** Names of the companion's resources that this one needs. */
  namesOf(resource: Encoded): readonly string[];
}
