import type { Engine, Lease } from "../engine/index.ts";
import type { ProxyView } from "../model/proxy.ts";
import { bodySize, type Encoded, type ResourceSet } from "../wire/encoded.ts";
import { partsOf } from "../wire/stacked-resources.ts";
import type { ResourceProvider, Wanted } from "../xds/provider.ts";

/** Keeps in the engine what connected proxies use, and lets go of the rest. */
export interface ProxyLeases {
  /** The same providers; what they compute for a proxy is kept as long as that proxy is connected. */
  readonly providers: readonly ResourceProvider[];
  /** Who a proxy is, worked out from facts of it and inputs where either changed. Kept as long. */
  view(proxy: string, facts: object, viewed: () => ProxyView): ProxyView;
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
  /** Holds what is prepared until the answer does: a sweep between two steps would forget it, and the answer compute it all at once. */
  readonly preparing: Lease;
  answer: Answer | undefined;
}

/** Who a proxy was found to be, and by what. */
interface Seen {
  readonly lease: Lease;
  facts: object | undefined;
  view: ProxyView | undefined;
}

/** What a proxy was offered, and when it asked for what. */
interface Answer {
  readonly view: ProxyView;
  readonly wanted: Wanted;
  readonly set: ResourceSet;
}

/**
 * One lease per proxy and type: a new answer replaces what the old one held. Most changes concern few types, so most questions are put again with
 * nothing changed: then the last answer counts, and nothing is looked up for it.
 */
export function leaseProviders(engine: Engine, providers: readonly ResourceProvider[]): ProxyLeases {
  const byType = new Map(providers.map(({ typeUrl }) => [typeUrl, new Map<string, Held>()]));
  const seenOf = new Map<string, Seen>();
  return {
    view(proxy, facts, viewed) {
      const seen = seenOf.get(proxy) ?? { lease: engine.lease("of a proxy's view"), facts: undefined, view: undefined };
      seenOf.set(proxy, seen);
      if (seen.view !== undefined && seen.facts === facts && seen.lease.current) return seen.view;
      const view = seen.lease.run(viewed);
      Object.assign(seen, { facts, view });
      return view;
    },
    providers: providers.map((provider) => leased(engine, provider, byType.get(provider.typeUrl) ?? new Map())),
    release(connected) {
      for (const byProxy of byType.values()) {
        for (const [proxy, { lease, preparing }] of byProxy) {
          if (connected.has(proxy)) continue;
          for (const one of [lease, preparing]) one.release();
          byProxy.delete(proxy);
        }
      }
      for (const [proxy, { lease }] of seenOf) {
        if (connected.has(proxy)) continue;
        lease.release();
        seenOf.delete(proxy);
      }
    },
    sharing: () =>
      new Map([...byType].map(([typeUrl, byProxy]) => [typeUrl, sharingOf([...byProxy.values()].map(({ answer }) => answer?.set))])),
  };
}

/** One provider, whose answers to each proxy are held by a lease of their own. */
function leased(engine: Engine, provider: ResourceProvider, byProxy: Map<string, Held>): ResourceProvider {
  const heldOf = (proxy: string): Held => {
    let held = byProxy.get(proxy);
    if (held === undefined) {
      held = { lease: engine.lease(provider.typeUrl), preparing: engine.lease(provider.typeUrl), answer: undefined };
      byProxy.set(proxy, held);
    }
    return held;
  };
  return {
    ...provider,
    isPrepared(view, wanted) {
      if (provider.asksAnew === true) return false;
      const held = heldOf(view.id);
      if (provider.isLastResult?.(view) === true) renew(held, view, wanted);
      return known(held, view, wanted) !== undefined;
    },
    *prepare(view, wanted) {
      const held = heldOf(view.id);
      if (isSameQuestion(held.answer, view, wanted)) yield* held.lease.refresh();
      if (provider.isLastResult?.(view) === true) renew(held, view, wanted);
      if (known(held, view, wanted) === undefined) yield* keeping(held.preparing, () => provider.prepare(view, wanted));
    },
    standing: (view, wanted) => (provider.asksAnew === true ? undefined : known(heldOf(view.id), view, wanted)),
    offered(view, wanted) {
      const held = heldOf(view.id);
      const before = provider.asksAnew === true ? undefined : known(held, view, wanted);
      if (before !== undefined) return before;
      const set = held.lease.run(() => provider.offered(view, wanted));
      held.preparing.release();
      held.answer = { view, wanted, set };
      return set;
    },
  };
}

/** Takes the new result of the last query for the answer, where all that led to it is as it was. */
function renew(held: Held, view: ProxyView, wanted: Wanted): void {
  if (!isSameQuestion(held.answer, view, wanted)) return;
  const set = held.lease.renewed();
  if (set !== undefined) held.answer = { view, wanted, set: set as ResourceSet };
}

/** The steps, each run so that what it computes is kept. */
function* keeping(lease: Lease, begin: () => Iterable<void>): Iterable<void> {
  const steps = lease.extend(() => begin()[Symbol.iterator]());
  while (lease.extend(() => steps.next()).done !== true) yield;
}

/** The last answer, if it was to the same question and all behind it is as it was. */
const known = ({ lease, answer }: Held, view: ProxyView, wanted: Wanted): ResourceSet | undefined =>
  isSameQuestion(answer, view, wanted) && lease.current ? answer.set : undefined;

const isSameQuestion = (answer: Answer | undefined, view: ProxyView, { wildcard, names }: Wanted): answer is Answer =>
  answer?.view === view && answer.wanted.wildcard === wildcard && answer.wanted.names === names;

function sharingOf(sets: readonly (ResourceSet | undefined)[]): Sharing {
  const distinct = new Set(sets.filter((set) => set !== undefined));
  // Most of what a set holds are maps that others share: a scrape is to cost what there is, not that times the classes.
  const parts = new Set([...distinct].flatMap((set) => partsOf(set.resources)));
  const resources = new Set<Encoded>();
  for (const part of parts) for (const resource of part.values()) resources.add(resource);
  return { classes: distinct.size, bytes: [...resources].reduce((sum, resource) => sum + bodySize(resource), 0) };
}
