import { formatOrigin } from "../config/object.ts";
import type { ConfigStore } from "../config/store/store-types.ts";
import type { ResourceProvider } from "../xds/provider.ts";

/** The same providers, which say of the objects a resource was made from also where they are written: `Gateway/shop/edge (edge.yaml:3)`. */
export function withPlaces(providers: readonly ResourceProvider[], store: Pick<ConfigStore, "origin">): readonly ResourceProvider[] {
  const placed = (key: string): string => {
    const origin = store.origin(key);
    return origin === undefined ? key : `${key} (${formatOrigin(origin)})`;
  };
  return providers.map((provider) => ({ ...provider, provenance: (view, name) => provider.provenance(view, name).map(placed) }));
}
