import type { ProxyView } from "../model/proxy.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";

/**
 * What was last served, for resources whose generator fails when a stream that holds nothing comes: it is given what its neighbours have. One
 * reference per type, kind of proxy and namespace, since sets are shared; the oldest are forgotten.
 */
export class LastGood {
  readonly #sets = new Map<string, ResourceSet>();
  readonly #limit: number;

  constructor(limit = 2_000) {
    this.#limit = limit;
  }

  note(typeUrl: string, view: ProxyView, served: ResourceSet): void {
    const key = keyOf(typeUrl, view);
    if (this.#sets.get(key) === served) return;
    this.#sets.delete(key);
    this.#sets.set(key, served);
    if (this.#sets.size <= this.#limit) return;
    for (const oldest of this.#sets.keys()) {
      this.#sets.delete(oldest);
      return;
    }
  }

  find(typeUrl: string, view: ProxyView, name: string): Encoded | undefined {
    return this.#sets.get(keyOf(typeUrl, view))?.resources.get(name);
  }
}

const keyOf = (typeUrl: string, view: ProxyView): string => `${typeUrl}|${view.type}|${view.namespace}`;
