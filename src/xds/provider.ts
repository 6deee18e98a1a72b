import type { ProxyView } from "../model/proxy.ts";
import type { ResourceSet } from "../wire/encoded.ts";

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
 * Where resources of one type come from. `xds/` knows names and versions, not meaning: `bin/` fills the table of providers.
 */
export interface ResourceProvider {
  readonly typeUrl: string;
  /** Computes what `offered` will need in small steps; the caller may pause between steps so that no slice of work is long. */
  prepare(view: ProxyView, wanted: Wanted): Iterable<void>;
  /** What the proxy should hold now. The same object as long as nothing changed, and for all proxies that share it. */
  offered(view: ProxyView, wanted: Wanted): ResourceSet;
  /** Object keys that one resource was made from, for logs and `config_dump?why`. */
  provenance(view: ProxyView, name: string): readonly string[];
}
