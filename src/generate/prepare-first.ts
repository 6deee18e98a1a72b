/** Steps towards something large that is made at once, and how it is made when they are done. */
export interface LargeResult {
  /** Names it among those prepared in one place. */
  readonly id: string;
  readonly steps: () => Iterable<unknown>;
  readonly make: () => object;
}

/**
 * Takes the steps towards a large result before it is made for the first time, so that nothing stands still for all of it. As long as somebody holds
 * the result, later changes cost little, and walking every step again would cost more than they do.
 */
export function definePrepareFirst(): (result: LargeResult) => Iterable<void> {
  const made = new Map<string, WeakRef<object>>();
  return function* ({ id, steps, make }) {
    if (made.get(id)?.deref() !== undefined) return;
    for (const _ of steps()) yield;
    for (const [other, result] of made) if (result.deref() === undefined) made.delete(other);
    const result = ahead(make);
    if (result !== undefined) made.set(id, new WeakRef(result));
    yield;
  };
}

/** Work done ahead of who needs it, and asks for it again: what fails is told there, and costs here what depends on it, no more. */
export function ahead<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
