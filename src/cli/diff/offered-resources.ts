import type { JsonValue, Registry } from "@bufbuild/protobuf";
import type { World } from "../../generate/world.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { encodedJson } from "../../wire/json.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, EXTENSION_CONFIG_TYPE, LISTENER_TYPE, ROUTE_TYPE, SECRET_TYPE } from "../../wire/type-urls.ts";
import { createNameSets, NO_NAMES } from "../../xds/name-sets.ts";
import type { NameSet, ResourceProvider, Wanted } from "../../xds/provider.ts";
import type { MeshProxy } from "./mesh-proxies.ts";

/** What a proxy is offered, by type. */
export type Offered = ReadonlyMap<string, ResourceSet>;

/** Asks for resources as Envoy does: all clusters and listeners, then what those name. Secrets are never asked for. */
export interface Asker {
  /** `watches` is what a client that asks by name alone (gRPC's) is known to ask for. */
  offered(view: ProxyView, watches?: MeshProxy["watches"]): Offered;
}

/** Names that a listener refers to. */
interface ListenerNames {
  readonly routes: readonly string[];
  readonly extensions: readonly string[];
}

/** Makes an asker. What it found in a resource it remembers as long as that resource lives, so that asking for many proxies costs little. */
export function createAsker(world: World, registry: Registry): Asker {
  const sets = createNameSets();
  const held = new Set<NameSet>(); // an interned set that nobody holds would come back under another id, and be computed anew
  const inListener = new WeakMap<Encoded, ListenerNames>();
  const named = (names: Iterable<string>): NameSet => {
    const set = sets.of([...names]);
    held.add(set);
    return set;
  };
  const namesIn = (listener: Encoded): ListenerNames => {
    const known = inListener.get(listener) ?? listenerNames(encodedJson(registry, listener));
    inListener.set(listener, known);
    return known;
  };
  const byName = (view: ProxyView, watches: Readonly<Record<string, readonly string[]>>): Offered =>
    new Map(
      asked(world, view).flatMap(({ typeUrl, offered }) => {
        const names = watches[typeUrl];
        return names === undefined ? [] : [[typeUrl, offered(view, { wildcard: false, names: named(names) })]];
      }),
    );
  return {
    offered(view, watches) {
      if (view.generator !== undefined) return byName(view, watches ?? {});
      const providers = asked(world, view);
      const offer = (typeUrl: string): readonly Encoded[] => [
        ...(providers
          .find((one) => one.typeUrl === typeUrl)
          ?.offered(view, all)
          .resources.values() ?? []),
      ];
      const companion = providers.find(({ typeUrl }) => typeUrl === CLUSTER_TYPE)?.companion;
      const listeners = offer(LISTENER_TYPE).map(namesIn);
      const names = new Map([
        [ENDPOINT_TYPE, named(offer(CLUSTER_TYPE).flatMap((cluster) => companion?.namesOf(cluster) ?? []))],
        [ROUTE_TYPE, named(listeners.flatMap(({ routes }) => routes))],
        [EXTENSION_CONFIG_TYPE, named(listeners.flatMap(({ extensions }) => extensions))],
      ]);
      return new Map(
        providers.map(({ typeUrl, partOf, offered }) => {
          const wanted = names.get(partOf ?? typeUrl);
          const wildcard = wanted === undefined || partOf !== undefined;
          return [typeUrl, offered(view, { wildcard, names: wanted ?? all.names })];
        }),
      );
    },
  };
}

const all: Wanted = { wildcard: true, names: NO_NAMES };

/** The types that such a proxy asks for. */
const asked = ({ providers }: World, view: ProxyView): readonly ResourceProvider[] =>
  providers.filter((provider) => provider.typeUrl !== SECRET_TYPE && provider.askedBy?.(view) !== false);

/** Route tables and filter configurations that a listener (as JSON) leaves to discovery, at any depth. */
function listenerNames(listener: JsonValue): ListenerNames {
  const routes: string[] = [];
  const extensions: string[] = [];
  const visit = (json: JsonValue): void => {
    if (typeof json !== "object" || json === null) return;
    if (Array.isArray(json)) {
      for (const item of json) visit(item);
      return;
    }
    if (typeof json.routeConfigName === "string") routes.push(json.routeConfigName);
    if (json.configDiscovery !== undefined && typeof json.name === "string") extensions.push(json.name);
    for (const value of Object.values(json)) visit(value);
  };
  visit(listener);
  return { routes, extensions };
}
