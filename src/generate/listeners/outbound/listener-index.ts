import { contentHash } from "../../../base/hash.ts";
import type { Query } from "../../../engine/index.ts";
import { type EgressScope, type GenerateContext, type ScopeKey, scopeId } from "../../context.ts";
import { serviceListId } from "../../lookups/key-list.ts";
import { definePrepareFirst } from "../../prepare-first.ts";
import { type PlacementTraits, type Slot, type SlotQuery, slotQueries } from "./slots.ts";

/** What of a scope decides which listeners there are. Namespaces that see the same services share it, and with it the whole index. */
export interface IndexKey {
  /** Stands for all the rest. */
  readonly id: string;
  readonly egress: readonly Pick<EgressScope, "port" | "bind" | "captureMode" | "services">[];
  readonly placement: PlacementTraits;
}

export interface PlacedScope extends PlacementTraits {
  readonly scope: ScopeKey;
}

/** All that stands on one listener, what wins conflicts first. `id` stands for the content. */
export interface SlotGroup {
  readonly id: string;
  readonly slots: readonly Slot[];
  /** All of them are: rules for connections do not concern it. */
  readonly isHttp: boolean;
}

/** Which services stand on which outbound listener of a scope. */
export interface ListenerIndex {
  readonly keyOf: Query<PlacedScope, IndexKey>;
  /** The work behind an index in small steps, before it is done for the first time. */
  readonly steps: (key: IndexKey) => Iterable<void>;
  /** Names of all listeners, sorted. */
  readonly names: Query<IndexKey, readonly string[]>;
  /** The slots of one listener. Does not change with slots of other listeners. */
  readonly group: Query<{ readonly index: IndexKey; readonly name: string }, SlotGroup>;
  /** Listeners that stand for single endpoints, by address. */
  readonly ofEndpoints: Query<IndexKey, readonly { readonly address: string; readonly name: string }[]>;
}

/** Puts the slots of all services of a scope together by listener. */
export function defineListenerIndex(
  { engine, lookups }: Pick<GenerateContext, "engine" | "lookups">,
  slotsOf: Query<SlotQuery, readonly Slot[]>,
): ListenerIndex {
  const index = engine.query<IndexKey, Readonly<Record<string, readonly Slot[]>>>({
    name: "outboundListenerIndex",
    id: ({ id }) => id,
    compute: (key) => indexOf(key, slotsOf),
  });
  const prepareFirst = definePrepareFirst();
  return {
    steps: (key) => prepareFirst({ id: key.id, steps: () => slotSteps(key, slotsOf), make: () => index(key) }),
    keyOf: engine.query<PlacedScope, IndexKey>({
      name: "outboundListenerIndexKey",
      id: ({ scope, ...placement }) => `${scopeId(scope)}#${JSON.stringify(placement)}`,
      same: (a, b) => a.id === b.id,
      compute: ({ scope, ...placement }) => {
        const egress = lookups.scope(scope).egress.map(({ port, bind, captureMode, services }) => ({ port, bind, captureMode, services }));
        const imports = egress.map(({ services, ...listener }) => [serviceListId(services), listener]);
        return { id: contentHash(JSON.stringify([imports, placement])), egress, placement };
      },
    }),
    names: engine.query<IndexKey, readonly string[]>({
      name: "outboundListenerNames",
      id: ({ id }) => id,
      compute: (key) => Object.keys(index(key)).sort(),
    }),
    group: engine.query<{ readonly index: IndexKey; readonly name: string }, SlotGroup>({
      name: "outboundListenerGroup",
      id: ({ index: { id }, name }) => `${id}#${name}`,
      same: (a, b) => a.id === b.id,
      compute: ({ index: key, name }) => {
        const slots = index(key)[name] ?? [];
        return { id: contentHash(JSON.stringify(slots)), slots, isHttp: slots.every(({ kind }) => kind === "http") };
      },
    }),
    ofEndpoints: engine.query<IndexKey, readonly { readonly address: string; readonly name: string }[]>({
      name: "endpointListeners",
      id: ({ id }) => id,
      compute: (key) =>
        Object.entries(index(key)).flatMap(([name, slots]) => {
          const [address, ...others] = new Set(slots.map(({ endpoint }) => endpoint));
          return address === undefined || others.length > 0 ? [] : [{ address, name }];
        }),
    }),
  };
}

function* slotSteps({ egress: listeners, placement }: IndexKey, slotsOf: Query<SlotQuery, readonly Slot[]>): Iterable<void> {
  for (const [egress, { services, ...listener }] of listeners.entries()) {
    const queryFor = slotQueries({ egress, listener, ...placement });
    for (const service of services) {
      slotsOf.try(queryFor(service));
      yield;
    }
  }
}

function indexOf(
  { egress: listeners, placement }: IndexKey,
  slotsOf: Query<SlotQuery, readonly Slot[]>,
): Readonly<Record<string, readonly Slot[]>> {
  const byName = new Map<string, Slot[]>();
  const claimed = new Set<string>();
  listeners.forEach(({ services, ...listener }, egress) => {
    const queryFor = slotQueries({ egress, listener, ...placement });
    const slots = services.flatMap((service) => slotsOf(queryFor(service)));
    // A port a Sidecar names is for the services it names there: what comes in by another listener is not added to it.
    for (const slot of slots.filter((one) => !claimed.has(one.listener))) {
      const list = byName.get(slot.listener);
      if (list === undefined) byName.set(slot.listener, [slot]);
      else list.push(slot);
    }
    if (listener.port !== undefined || listener.bind !== "") for (const slot of slots) claimed.add(slot.listener);
  });
  return Object.fromEntries([...byName].map(([name, slots]) => [name, slots.sort(winnerFirst)]));
}

const winnerFirst = (a: Slot, b: Slot): number =>
  a.egress - b.egress ||
  Number(a.public) - Number(b.public) ||
  a.age - b.age ||
  (a.title < b.title ? -1 : a.title > b.title ? 1 : a.port - b.port);
