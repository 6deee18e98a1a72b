import type { GenerateContext } from "../../context.ts";

/** Where a collector or authorizer of the mesh's `extensionProviders` is reached. */
export interface ProviderTarget {
  readonly cluster: string;
  readonly host: string;
}

/** Finds it; undefined where the registry has no such service. */
export type ProviderLookup = (service: string, port: number) => ProviderTarget | undefined;

/**
 * Providers name their service as `host` or `namespace/host`; a host that several namespaces declare must be told apart, as in Istio. A
 * service the registry does not know, without that port, or outside the proxy's scope has no cluster, and some of Envoy's tracers make it
 * refuse a whole listener for that: such a provider is left out.
 */
export function providerLookup({ registry }: Pick<GenerateContext, "registry">, unreachable: readonly string[]): ProviderLookup {
  return (service, port) => {
    const slash = service.indexOf("/");
    const host = service.slice(slash + 1);
    const declared = registry.servicesByHost(host).filter(({ namespace }) => slash < 0 || namespace === service.slice(0, slash));
    if (new Set(declared.map(({ namespace }) => namespace)).size !== 1 || unreachable.includes(host)) return undefined;
    const known = declared.some((ref) => registry.service(ref)?.ports.some(({ number }) => number === port) === true);
    return known ? { cluster: `outbound|${port}||${host}`, host } : undefined;
  };
}
