import type { Engine, Lease } from "../engine/index.ts";
import { bodySize, type Encoded, type ResourceSet } from "../wire/encoded.ts";
import type { ResourceProvider } from "../xds/provider.ts";

/** Keeps in the engine what connected proxies use, and lets go of the rest. */
export interface ProxyLeases {
  /** The same providers; what they compute for a proxy is kept as long as that proxy is connected. */
  readonly providers: readonly ResourceProvider[];
  /** Forgets what only proxies that have gone used. */
  release(connected: ReadonlySet<string>): void;
  /** How far proxies share what they are offered, by type. Counts when asked. */
  sharing(): ReadonlyMap<string, Sharing>;
}

export interface Sharing {
  /** Distinct sets of resources. Proxies that agree on everything a type is made from have the same one. */
  readonly classes: number;
  /** Bytes of all distinct resources in them: what is really in memory. */
  readonly bytes: number;
}

interface Held {
  readonly lease: Lease;
  set: ResourceSet | undefined;
}

/** One lease per proxy and type: a new answer replaces what the old one held. */
export function leaseProviders(engine: Engine, providers: readonly ResourceProvider[]): ProxyLeases {
  const byProxy = new Map<string, Map<string, Held>>();
  const heldOf = (proxy: string, typeUrl: string): Held => {
    const types = byProxy.get(proxy) ?? new Map<string, Held>();
    byProxy.set(proxy, types);
    const held = types.get(typeUrl) ?? { lease: engine.lease(`${proxy} ${typeUrl}`), set: undefined };
    types.set(typeUrl, held);
    return held;
  };
  return {
    providers: providers.map((provider) => ({
      ...provider,
      offered: (view, wanted) => {
        const held = heldOf(view.id, provider.typeUrl);
        const set = held.lease.run(() => provider.offered(view, wanted));
        held.set = set;
        return set;
      },
    })),
    release(connected) {
      for (const [proxy, types] of byProxy) {
        if (connected.has(proxy)) continue;
        for (const { lease } of types.values()) lease.release();
        byProxy.delete(proxy);
      }
    },
    sharing: () =>
      new Map(providers.map(({ typeUrl }) => [typeUrl, sharingOf([...byProxy.values()].map((types) => types.get(typeUrl)?.set))])),
  };
}

function sharingOf(sets: readonly (ResourceSet | undefined)[]): Sharing {
  const distinct = new Set(sets.filter((set) => set !== undefined));
  const resources = new Set<Encoded>();
  for (const set of distinct) for (const resource of set.resources.values()) resources.add(resource);
  return { classes: distinct.size, bytes: [...resources].reduce((sum, resource) => sum + bodySize(resource), 0) };
}
