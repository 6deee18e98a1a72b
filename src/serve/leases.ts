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

/** What is kept of one proxy. */
interface KeptProxy {
  readonly seen: Seen;
  /** By the number of the provider. */
  readonly held: (Held | undefined)[];
}

/** What is kept of proxies, by their ids. Whoever asks for one mostly asks for it again at once, for the next type. */
class KeptProxies {
  readonly #engine: Engine;
  readonly #byId = new Map<string, KeptProxy>();
  #lastId: string | undefined;
  #last: KeptProxy | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  of(id: string): KeptProxy {
    if (this.#last !== undefined && this.#lastId === id) return this.#last;
    let kept = this.#byId.get(id);
    if (kept === undefined) {
      kept = { seen: { lease: this.#engine.lease("of a proxy's view"), facts: undefined, view: undefined }, held: [] };
      this.#byId.set(id, kept);
    }
    this.#lastId = id;
    this.#last = kept;
    return kept;
  }

  all(): Iterable<KeptProxy> {
    return this.#byId.values();
  }

  release(connected: ReadonlySet<string>): void {
    for (const [id, { seen, held }] of this.#byId) {
      if (connected.has(id)) continue;
      seen.lease.release();
      for (const one of held) {
        one?.lease.release();
        one?.preparing.release();
      }
      this.#byId.delete(id);
    }
    this.#last = undefined;
  }
}

/**
 * One lease per proxy and type: a new answer replaces what the old one held. Most changes concern few types, so most questions are put again with
 * nothing changed: then the last answer counts, and nothing is looked up for it.
 */
export function leaseProviders(engine: Engine, providers: readonly ResourceProvider[]): ProxyLeases {
  const proxies = new KeptProxies(engine);
  return {
    view(proxy, facts, viewed) {
      const { seen } = proxies.of(proxy);
      if (seen.view !== undefined && seen.facts === facts && seen.lease.current) return seen.view;
      const view = seen.lease.run(viewed);
      Object.assign(seen, { facts, view });
      return view;
    },
    providers: providers.map((provider, number) => leased(provider, heldBy(engine, proxies, { provider, number }))),
    release: (connected) => proxies.release(connected),
    sharing: () =>
      new Map(
        providers.map(({ typeUrl }, number) => [typeUrl, sharingOf([...proxies.all()].map(({ held }) => held[number]?.answer?.set))]),
      ),
  };
}

/** What is held of one type for a proxy. */
function heldBy(
  engine: Engine,
  proxies: KeptProxies,
  { provider: { typeUrl }, number }: { readonly provider: ResourceProvider; readonly number: number },
): (proxy: string) => Held {
  return (proxy) => {
    const { held } = proxies.of(proxy);
    const known = held[number];
    if (known !== undefined) return known;
    const made = { lease: engine.lease(typeUrl), preparing: engine.lease(typeUrl), answer: undefined };
    while (held.length < number) held.push(undefined); // so that it has no holes
    held[number] = made;
    return made;
  };
}

/** One provider, whose answers to each proxy are held by a lease of their own. */
function leased(provider: ResourceProvider, heldOf: (proxy: string) => Held): ResourceProvider {
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
