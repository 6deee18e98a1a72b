import type { ProxyView } from "../model/proxy.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";
import type { StreamDump, TypeDump, TypeState } from "../xds/state.ts";

/** What a proxy holds and should hold, on whichever stream it asked for it. A type is there once. */
export interface ProxyDump {
  readonly view: ProxyView;
  readonly types: readonly Omit<TypeDump, "wanted">[];
  readonly rejected: ReadonlyMap<string, Rejections>;
}

/** What a proxy refused of a type, by name. */
export type Rejections = ReadonlyMap<string, TypeState["rejected"][number]>;

/** One stream as it is dumped, and how it stands. */
export interface DumpedStream {
  readonly dump: StreamDump;
  readonly types: readonly Pick<TypeState, "typeUrl" | "rejected">[];
}

/**
 * Puts together what a proxy has on its streams, given the newest first: Envoy may ask for secrets, and for what it finds out on demand, on streams of
 * their own. Of a resource that several have the newest tells, since the others may be what is left of a connection that is gone.
 */
export function proxyDump(streams: readonly [DumpedStream, ...DumpedStream[]]): ProxyDump {
  const dumps = streams.flatMap(({ dump }) => dump.types);
  const states = streams.flatMap(({ types }) => types);
  return {
    view: streams[0].dump.view,
    types: [...Map.groupBy(dumps, ({ typeUrl }) => typeUrl)].map(([typeUrl, types]) => joined(typeUrl, types)),
    rejected: new Map(
      [...Map.groupBy(states, ({ typeUrl }) => typeUrl)].map(([typeUrl, types]) => [
        typeUrl,
        byName(types.map(({ rejected }) => rejected)),
      ]),
    ),
  };
}

function joined(typeUrl: string, types: readonly TypeDump[]): Omit<TypeDump, "wanted"> {
  // Who asks for everything was told all there is: an older stream that did so too knows less.
  const newestOfAll = types.find(({ wanted }) => wanted.wildcard);
  const counted = types.filter((type) => !type.wanted.wildcard || type === newestOfAll);
  const offered: ResourceSet = {
    resources: byName<Encoded>(counted.map((type) => [...type.offered.resources.values()])),
    failed: counted.flatMap((type) => type.offered.failed),
  };
  return { typeUrl, held: [...byName(counted.map(({ held }) => held)).values()], offered };
}

/** The first that has a name counts. */
const byName = <T extends { readonly name: string }>(lists: readonly (readonly T[])[]): ReadonlyMap<string, T> =>
  new Map(lists.toReversed().flatMap((list) => list.map((one) => [one.name, one])));
