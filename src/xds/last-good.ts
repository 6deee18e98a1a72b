import type { Clock } from "../base/clock.ts";
import type { ProxyView } from "../model/proxy.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";

/** How long a kind of proxy in a namespace may be away before it has no neighbours any more: as long as a restart may take. */
const KEPT_MS = 5 * 60_000;

interface Kept {
  readonly set: WeakRef<ResourceSet>;
  /** Holds the set where no stream does. */
  hold: ResourceSet | undefined;
  until: number;
}

/**
 * What was last served, for resources whose generator fails when a stream that holds nothing comes: it is given what its neighbours have. One
 * reference per type, kind of proxy and namespace, since sets are shared. Those of connected proxies cost nothing, as their streams hold them; what only those had
 * who have gone is forgotten after a while, or when memory is short: namespaces that come and go would each leave all that was served at its time.
 */
export class LastGood {
  /** By kind of proxy, then by type. */
  readonly #kinds = new Map<string, Map<string, Kept>>();
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #limit: number;

  constructor(clock: Pick<Clock, "monotonic">, limit = 2_000) {
    this.#clock = clock;
    this.#limit = limit;
  }

  note(typeUrl: string, view: ProxyView, served: ResourceSet): void {
    const kind = kindOf(view);
    const sets = this.#kinds.get(kind) ?? new Map<string, Kept>();
    if (sets.get(typeUrl)?.hold === served) return;
    sets.set(typeUrl, { set: new WeakRef(served), hold: served, until: this.#clock.monotonic() + KEPT_MS });
    this.#kinds.delete(kind);
    this.#kinds.set(kind, sets);
    if (this.#kinds.size <= this.#limit) return;
    for (const oldest of this.#kinds.keys()) {
      this.#kinds.delete(oldest);
      return;
    }
  }

  /** A proxy goes; another may come in its place. */
  left(view: ProxyView): void {
    for (const kept of this.#kinds.get(kindOf(view))?.values() ?? []) {
      kept.hold = kept.set.deref();
      kept.until = this.#clock.monotonic() + KEPT_MS;
    }
  }

  /** Lets go of what was not served for long, as far as no stream holds it. To be called now and then. */
  age(): void {
    this.#letGo(this.#clock.monotonic());
  }

  /** Keeps no more than streams hold: memory is short. */
  forget(): void {
    this.#letGo(Number.POSITIVE_INFINITY);
  }

  find(typeUrl: string, view: ProxyView, name: string): Encoded | undefined {
    return this.#kinds.get(kindOf(view))?.get(typeUrl)?.set.deref()?.resources.get(name);
  }

  #letGo(until: number): void {
    for (const [kind, sets] of this.#kinds) {
      for (const [typeUrl, kept] of sets) {
        if (kept.until <= until) kept.hold = undefined;
        if (kept.hold === undefined && kept.set.deref() === undefined) sets.delete(typeUrl);
      }
      if (sets.size === 0) this.#kinds.delete(kind);
    }
  }
}

const kindOf = (view: ProxyView): string => `${view.type}|${view.namespace}`;
