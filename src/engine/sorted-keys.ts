/**
 * A set of strings read as a sorted array. Writes only note the difference, so loading n keys costs one sort; a read
 * merges it in, so one key more in ten thousand costs a copy, not a sort. The array is the same instance until the
 * set really changed.
 */
export class SortedKeys {
  #sorted: readonly string[] = [];
  /** Made when needed: of ten thousand index keys most hold one row and never change, and the first key needs no set. */
  #added: Set<string> | undefined;
  #removed: Set<string> | undefined;

  get size(): number {
    return this.#sorted.length + (this.#added?.size ?? 0) - (this.#removed?.size ?? 0);
  }

  /** Adds a key that is not in the set. */
  add(key: string): void {
    if (this.#removed?.delete(key) === true) return;
    if (this.#sorted.length === 0 && this.#added === undefined) {
      this.#sorted = [key];
      return;
    }
    this.#added ??= new Set();
    this.#added.add(key);
  }

  /** Removes a key that is in the set. */
  remove(key: string): void {
    if (this.#added?.delete(key) === true) return;
    this.#removed ??= new Set();
    this.#removed.add(key);
  }

  /** The keys in code-unit order. */
  toArray(): readonly string[] {
    const added = this.#added ?? NONE;
    const removed = this.#removed ?? NONE;
    if (added.size > 0 || removed.size > 0) this.#sorted = mergeKeys(this.#sorted, added, removed);
    this.#added = undefined;
    this.#removed = undefined;
    return this.#sorted;
  }
}

const NONE: ReadonlySet<string> = new Set();

/** `sorted` without `removed` and with `added`, which it does not hold, in code-unit order. */
export function mergeKeys(sorted: readonly string[], added: ReadonlySet<string>, removed: ReadonlySet<string>): readonly string[] {
  const incoming = [...added].sort();
  const merged: string[] = [];
  let next = 0;
  for (const key of sorted) {
    if (removed.has(key)) continue;
    for (let one = incoming[next]; one !== undefined && one < key; one = incoming[next]) {
      merged.push(one);
      next++;
    }
    merged.push(key);
  }
  return merged.concat(incoming.slice(next));
}

/** Position of a key in a sorted array, or -1. */
export function findKey(sorted: readonly string[], key: string): number {
  let [low, high] = [0, sorted.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const candidate = sorted[middle] ?? "";
    if (candidate === key) return middle;
    if (candidate < key) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** Whether two arrays hold the same items in the same order. */
export function sameItems(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a === b || (a.length === b.length && a.every((item, i) => item === b[i]));
}
