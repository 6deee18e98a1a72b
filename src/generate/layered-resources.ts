import type { Encoded } from "../wire/encoded.ts";

/**
 * A map on top of another one that it does not copy. A thousand workloads that differ in a few inbound resources share the large map of
 * what they all see, and a change of that map costs each of them nothing. Names of the two parts do not overlap.
 */
export class LayeredResources implements ReadonlyMap<string, Encoded> {
  readonly base: ReadonlyMap<string, Encoded>;
  readonly top: ReadonlyMap<string, Encoded>;

  constructor(base: ReadonlyMap<string, Encoded>, top: ReadonlyMap<string, Encoded>) {
    this.base = base;
    this.top = top;
  }

  get size(): number {
    return this.base.size + this.top.size;
  }

  get(name: string): Encoded | undefined {
    return this.top.get(name) ?? this.base.get(name);
  }

  has(name: string): boolean {
    return this.top.has(name) || this.base.has(name);
  }

  forEach(visit: (value: Encoded, key: string, map: ReadonlyMap<string, Encoded>) => void): void {
    for (const [name, resource] of this) visit(resource, name, this);
  }

  *entries(): MapIterator<[string, Encoded]> {
    yield* this.base.entries();
    yield* this.top.entries();
  }

  *keys(): MapIterator<string> {
    yield* this.base.keys();
    yield* this.top.keys();
  }

  *values(): MapIterator<Encoded> {
    yield* this.base.values();
    yield* this.top.values();
  }

  [Symbol.iterator](): MapIterator<[string, Encoded]> {
    return this.entries();
  }
}
