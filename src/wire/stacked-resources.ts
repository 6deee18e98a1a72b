import type { Encoded, ResourceSet } from "./encoded.ts";

type Resources = ResourceSet["resources"];

/** So many maps are asked one after the other for a name; of more a map of all is made, when the first name is asked for. */
const MOST_ASKED = 4;

/**
 * Several maps as one, none of which is copied. Workloads that differ in little share the large maps of what they all see, so a change costs each
 * of them the maps that it is in, and not all they have. Names of the parts do not overlap.
 */
export class StackedResources implements Resources {
  readonly parts: readonly Resources[];
  readonly size: number;
  #together: Resources | undefined;

  constructor(parts: readonly Resources[]) {
    this.parts = parts.flatMap(partsOf);
    this.size = parts.reduce((sum, part) => sum + part.size, 0);
  }

  get(name: string): Encoded | undefined {
    if (this.parts.length > MOST_ASKED) return this.#all.get(name);
    for (const part of this.parts) {
      const found = part.get(name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  forEach(visit: (value: Encoded, key: string, map: Resources) => void): void {
    for (const [name, resource] of this) visit(resource, name, this);
  }

  *entries(): MapIterator<[string, Encoded]> {
    for (const part of this.parts) yield* part.entries();
  }

  *keys(): MapIterator<string> {
    for (const part of this.parts) yield* part.keys();
  }

  *values(): MapIterator<Encoded> {
    for (const part of this.parts) yield* part.values();
  }

  [Symbol.iterator](): MapIterator<[string, Encoded]> {
    return this.entries();
  }

  get #all(): Resources {
    this.#together ??= new Map(this);
    return this.#together;
  }
}

/** The maps that a map is made of, itself where it is one. */
export const partsOf = (resources: Resources): readonly Resources[] =>
  resources instanceof StackedResources ? resources.parts : [resources];

/** Several maps as one; the only one that has something, where that is so. */
export function stacked(maps: readonly Resources[]): Resources {
  const filled = maps.filter(({ size }) => size > 0);
  return filled.length > 1 ? new StackedResources(filled) : (filled[0] ?? NOTHING);
}

const NOTHING: Resources = new Map();

/** What two maps do not have in common as parts: all in which they may differ. */
export function unshared(a: Resources, b: Resources): readonly [Resources, Resources] {
  if (a === b) return [NOTHING, NOTHING];
  if (!(a instanceof StackedResources && b instanceof StackedResources)) return [a, b];
  const [inA, inB] = [new Set(a.parts), new Set(b.parts)];
  return [stacked(a.parts.filter((part) => !inB.has(part))), stacked(b.parts.filter((part) => !inA.has(part)))];
}
