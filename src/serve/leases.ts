import type { Engine, Lease } from "../engine/index.ts";
import type { ResourceProvider } from "../xds/provider.ts";

/** Keeps in the engine what connected proxies use, and lets go of the rest. */
export interface ProxyLeases {
  /** The same providers; what they compute for a proxy is kept as long as that proxy is connected. */
  readonly providers: readonly ResourceProvider[];
  /** Forgets what only proxies that have gone used. */
  release(connected: ReadonlySet<string>): void;
}

/** One lease per proxy and type: a new answer replaces what the old one held. */
export function leaseProviders(engine: Engine, providers: readonly ResourceProvider[]): ProxyLeases {
  const byProxy = new Map<string, Map<string, Lease>>();
  const leaseOf = (proxy: string, typeUrl: string): Lease => {
    const leases = byProxy.get(proxy) ?? new Map<string, Lease>();
    byProxy.set(proxy, leases);
    const lease = leases.get(typeUrl) ?? engine.lease(`${proxy} ${typeUrl}`);
    leases.set(typeUrl, lease);
    return lease;
  };
  return {
    providers: providers.map((provider) => ({
      ...provider,
      offered: (view, wanted) => leaseOf(view.id, provider.typeUrl).run(() => provider.offered(view, wanted)),
    })),
    release(connected) {
      for (const [proxy, leases] of byProxy) {
        if (connected.has(proxy)) continue;
        for (const lease of leases.values()) lease.release();
        byProxy.delete(proxy);
      }
    },
  };
}
