import type { ProxyView } from "../../model/proxy.ts";
import type { ResourceSet } from "../../wire/encoded.ts";
import type { NameSet, ResourceProvider, Wanted } from "../../xds/provider.ts";
import { objectOf, type PatchedProvider } from "./patched-provider.ts";
import type { Patches } from "./patches.ts";

/** Configurations that filters ask for by name (ECDS): what `base` has, and what EnvoyFilters add. A proxy gets those it asks for. */
export function createExtensionProvider({ extensions, plans }: Patches, base: ResourceProvider): PatchedProvider {
  const narrowed = new WeakMap<ResourceSet, Map<number, ResourceSet>>();
  const all = (view: ProxyView, wanted: Wanted): ResourceSet => extensions.offered(plans.of(view), view, base.offered(view, wanted));
  const provider: ResourceProvider = {
    ...base,
    offered: (view, wanted) => (wanted.wildcard ? all(view, wanted) : only(all(view, wanted), wanted.names)),
    provenance: (view, name) => [...base.provenance(view, name), ...extensions.behind(plans.of(view), view, { name }).map(objectOf)],
  };
  return { provider, outcome: (view, wanted) => extensions.patched(plans.of(view), view, base.offered(view, wanted)) };

  function only(set: ResourceSet, names: NameSet): ResourceSet {
    const known = narrowed.get(set) ?? new Map<number, ResourceSet>();
    narrowed.set(set, known);
    const found = known.get(names.id) ?? { resources: new Map([...set.resources].filter(([name]) => names.names.has(name))), failed: [] };
    known.set(names.id, found);
    return found;
  }
}
