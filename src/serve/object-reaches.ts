import type { Reach, Refusal } from "../config/status/object-report.ts";
import { proxyIdOf } from "../debug/sync-status.ts";
import { LISTENER_TYPE, shortTypeName } from "../wire/type-urls.ts";
import type { ResourceProvider } from "../xds/provider.ts";
import type { StreamProgress } from "../xds/server.ts";

/** How far objects have come among the proxies connected at one moment. */
export interface ObjectReaches {
  readonly proxies: number;
  of(key: string): Reach;
  /** Every proxy has acknowledged the push, and none refuses what is made from the object. */
  isEverywhere(key: string, push: number): boolean;
}

export interface ReachInput {
  readonly progress: readonly StreamProgress[];
  /** The push that brought an object as it is now; of others it is not known any more, as all had them. */
  readonly pushes: ReadonlyMap<string, number>;
  readonly providers: readonly Pick<ResourceProvider, "typeUrl" | "provenance">[];
}

/** One who has asked for listeners, on whatever streams. */
interface Proxy {
  readonly name: string;
  readonly streams: readonly StreamProgress[];
  /** The last push of which it has acknowledged all; less than any while it is being served for the first time. */
  readonly upTo: number;
}

const NOT_YET = -1;

/** Works out reaches. A proxy that an object does not concern has it as soon as it has acknowledged everything else. */
export function objectReaches({ progress, pushes, providers }: ReachInput): ObjectReaches {
  const proxies = proxiesOf(progress);
  const least = Math.min(...proxies.map(({ upTo }) => upTo));
  const refusals = refusalsOf(proxies, pushes, new Map(providers.map((provider) => [provider.typeUrl, provider])));
  return {
    proxies: proxies.length,
    of(key) {
      const push = pushes.get(key) ?? 0;
      const refused = refusals.get(key);
      if (refused === undefined) return { proxies: proxies.length, acknowledged: countUpTo(proxies, push), refusals: [] };
      const refusing = new Set(refused.map(({ proxy }) => proxy));
      const others = proxies.filter(({ name }) => !refusing.has(name));
      return { proxies: proxies.length, acknowledged: countUpTo(others, push), refusals: refused };
    },
    isEverywhere: (key, push) => least >= push && !refusals.has(key),
  };

  function countUpTo(some: readonly Proxy[], push: number): number {
    return least >= push ? some.length : some.reduce((count, { upTo }) => count + Number(upTo >= push), 0);
  }
}

function proxiesOf(progress: readonly StreamProgress[]): readonly Proxy[] {
  const byNode = Map.groupBy(progress, ({ state }) => state.node);
  return [...byNode].flatMap(([node, streams]): readonly Proxy[] => {
    const asks = streams.some(({ state }) => state.types.some(({ typeUrl }) => typeUrl === LISTENER_TYPE));
    return node === "" || !asks ? [] : [{ name: proxyIdOf(node), streams, upTo: Math.min(...streams.map(upToOf)) }];
  });
}

/** One that was settled at some time is as far as it was then; one that never was has nothing. */
function upToOf({ state: { types }, upTo }: StreamProgress): number {
  const isServed = types.every(({ inSync, ackedAt }) => inSync || ackedAt !== undefined);
  return isServed ? upTo : NOT_YET;
}

type Providers = ReadonlyMap<string, Pick<ResourceProvider, "provenance">>;

/**
 * What proxies refuse, by the objects it is made from. Where a proxy holds on to what it had accepted before, objects that all proxies had by then are
 * as they were: the refusal is of what came later.
 */
function refusalsOf(
  proxies: readonly Proxy[],
  pushes: ReadonlyMap<string, number>,
  providers: Providers,
): ReadonlyMap<string, readonly Refusal[]> {
  const found = new Map<string, Refusal[]>();
  const made = new Map<string, readonly string[]>();
  for (const { name: proxy, streams } of proxies) {
    for (const { state } of streams) {
      for (const { typeUrl, rejected } of state.types) {
        for (const { name, version, error, fallback } of rejected) {
          const id = `${typeUrl} ${name} ${version}`;
          const keys = made.get(id) ?? objectsBehind(providers.get(typeUrl), state.view, name);
          made.set(id, keys);
          const refusal = { proxy, resource: `${shortTypeName(typeUrl).toUpperCase()} ${name}`, error };
          for (const key of keys) if (fallback === undefined || pushes.has(key)) listAt(found, key).push(refusal);
        }
      }
    }
  }
  for (const list of found.values()) list.sort((a, b) => (a.proxy < b.proxy ? -1 : a.proxy > b.proxy ? 1 : 0));
  return found;
}

function listAt<T>(lists: Map<string, T[]>, key: string): T[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

function objectsBehind(
  provider: Pick<ResourceProvider, "provenance"> | undefined,
  view: StreamProgress["state"]["view"],
  name: string,
): readonly string[] {
  try {
    return view === undefined ? [] : (provider?.provenance(view, name) ?? []);
  } catch {
    return []; // It cannot be made at present; what is served is a last good version.
  }
}
