import type { Query } from "../../../engine/index.ts";
import type { GenerateContext, ScopeKey } from "../../context.ts";
import { canonical } from "../traits.ts";
import { type PlacementTraits, type Slot, type SlotQuery } from "./slots.ts";

export type IndexQuery = ScopeKey & PlacementTraits;

/** Which services stand on which outbound listener of a scope. */
export interface ListenerIndex {
  /** Names of all listeners, sorted. */
  readonly names: Query<IndexQuery, readonly string[]>;
  /** The slots of one listener, those that win conflicts first. Does not change with slots of other listeners. */
  readonly slots: Query<{ readonly index: IndexQuery; readonly name: string }, readonly Slot[]>;
}

/** Puts the slots of all services of a scope together by listener. */
export function defineListenerIndex(ctx: Pick<GenerateContext, "engine" | "lookups">, slotsOf: Query<SlotQuery, readonly Slot[]>): ListenerIndex {
  const index = ctx.engine.query<IndexQuery, Readonly<Record<string, readonly Slot[]>>>({
    name: "outboundListenerIndex",
    id: canonical,
    compute: (query) => indexOf(ctx, query, slotsOf),
  });
  return {
    names: ctx.engine.query<IndexQuery, readonly string[]>({
      name: "outboundListenerNames",
      id: canonical,
      compute: (query) => Object.keys(index(query)).sort(),
    }),
    slots: ctx.engine.query<{ readonly index: IndexQuery; readonly name: string }, readonly Slot[]>({
      name: "outboundListenerSlots",
      id: ({ index: query, name }) => `${canonical(query)}#${name}`,
      compute: ({ index: query, name }) => index(query)[name] ?? [],
    }),
  };
}

function indexOf(
  ctx: Pick<GenerateContext, "lookups">,
  query: IndexQuery,
  slotsOf: Query<SlotQuery, readonly Slot[]>,
): Readonly<Record<string, readonly Slot[]>> {
  const { families, bindsPorts, dnsCapture, unprivileged } = query;
  const scope = ctx.lookups.scope({ namespace: query.namespace, sidecar: query.sidecar });
  const byName = new Map<string, Slot[]>();
  const claimed = new Set<string>();
  scope.egress.forEach((egress, position) => {
    const explicit = egress.port !== undefined || egress.bind !== "";
    const listener = { port: egress.port, bind: egress.bind, captureMode: egress.captureMode };
    const slots = egress.services.flatMap(({ namespace, host, ports }) =>
      slotsOf({ service: { namespace, host }, ports, egress: position, listener, families, bindsPorts, dnsCapture, unprivileged }),
    );
    // A port a Sidecar names is for the services it names there: what comes in by another listener is not added to it.
    for (const slot of slots.filter((one) => !claimed.has(one.listener))) {
      const list = byName.get(slot.listener);
      if (list === undefined) byName.set(slot.listener, [slot]);
      else list.push(slot);
    }
    if (explicit) for (const slot of slots) claimed.add(slot.listener);
  });
  return Object.fromEntries([...byName].map(([name, slots]) => [name, slots.sort(winnerFirst)]));
}

const winnerFirst = (a: Slot, b: Slot): number => a.egress - b.egress || a.age - b.age || (a.title < b.title ? -1 : a.title > b.title ? 1 : a.port - b.port);
