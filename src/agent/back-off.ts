/** Delays that double up to a limit, each moved at random so that many who lost the same server do not come back at once. */
export interface BackOff {
  next(): number;
  reset(): void;
}

/** Starts at `firstMs`; `reset` is for when something has worked. */
export function createBackOff({ firstMs, mostMs }: { readonly firstMs: number; readonly mostMs: number }): BackOff {
  let delay = firstMs;
  return {
    next() {
      const current = delay;
      delay = Math.min(mostMs, delay * 2);
      return current * (0.75 + Math.random() * 0.5);
    },
    reset() {
      delay = firstMs;
    },
  };
}
