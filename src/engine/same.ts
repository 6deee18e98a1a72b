/** Container pairs compared before cyclic data is guarded against; below this the guard would only cost. */
const GUARD_AFTER = 10_000;

/**
 * Structural equality for query results: primitives, arrays, plain objects, `Uint8Array`, `Map` and `Set`; anything
 * else by identity. Strict on purpose: key and entry order count, and so do `-0` and a key holding `undefined`, because
 * a reader could tell them apart; a false "different" costs one re-run, a false "same" would be wrong configuration.
 * Keeps its own stack, so depth is bounded by memory only, and it ends on cyclic data.
 */
export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (!isObject(a) || !isObject(b)) return false;
  const pending: object[] = [a, b];
  const guard = new CycleGuard();
  for (;;) {
    const right = pending.pop();
    const left = pending.pop();
    if (left === undefined || right === undefined) return true;
    if (guard.seen(left, right)) continue;
    if (!expand(left, right, pending)) return false;
  }
}

/** Compares one level; pairs that need a closer look are pushed on `pending`. */
function expand(a: object, b: object, pending: object[]): boolean {
  const proto: unknown = Object.getPrototypeOf(a);
  if (proto !== Object.getPrototypeOf(b)) return false;
  if (Array.isArray(a)) return Array.isArray(b) && pairs(a, b, pending);
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  if (proto === Object.prototype || proto === null) return fields(a, b, pending);
  if (proto === Map.prototype) {
    const [left, right] = [a as Map<unknown, unknown>, b as Map<unknown, unknown>];
    return pairs([...left.keys(), ...left.values()], [...right.keys(), ...right.values()], pending);
  }
  if (proto === Set.prototype) return pairs([...(a as Set<unknown>)], [...(b as Set<unknown>)], pending);
  return false;
}

function pairs(a: readonly unknown[], b: readonly unknown[], pending: object[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    if (!pair(a[i], b[i], pending)) return false;
  }
  return true;
}

function fields(a: object, b: object, pending: object[]): boolean {
  const keys = Object.keys(a);
  const others = Object.keys(b);
  if (keys.length !== others.length) return false;
  const left = a as Readonly<Record<string, unknown>>;
  const right = b as Readonly<Record<string, unknown>>;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (key === undefined || key !== others[i] || !pair(left[key], right[key], pending)) return false;
  }
  return true;
}

function pair(a: unknown, b: unknown, pending: object[]): boolean {
  if (Object.is(a, b)) return true;
  if (!isObject(a) || !isObject(b)) return false;
  pending.push(a, b);
  return true;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Remembers compared pairs, but only once there were suspiciously many. */
class CycleGuard {
  #steps = 0;
  readonly #pairs = new Map<object, Set<object>>();

  seen(a: object, b: object): boolean {
    if (++this.#steps < GUARD_AFTER) return false;
    const partners = this.#pairs.get(a);
    if (partners === undefined) {
      this.#pairs.set(a, new Set([b]));
      return false;
    }
    if (partners.has(b)) return true;
    partners.add(b);
    return false;
  }
}
