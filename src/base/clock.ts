/** Time as a value that can be passed: the only place where the process clock and timers are touched, so tests can turn the hands. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that never go backwards, for measuring. */
  monotonic(): number;
  /** Calls `fn` once after `ms`; the returned function cancels. A pending timer does not keep the process alive. */
  after(ms: number, fn: () => void): () => void;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's own: what programs are given. Tests give one that they move. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      }, ms);
      const abort = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
    }),
};

/** Keeps the process from ending while it has nothing but timers to wait for; the returned function lets it go. */
export function holdProcess(): () => void {
  const timer = setInterval(() => {}, 2 ** 30);
  return () => clearInterval(timer);
}

/** Resolves when the promise does, or after `ms`: for what is better known, and need not be waited for. */
export async function waitAtMost(clock: Pick<Clock, "after">, ms: number, promise: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const cancel = clock.after(ms, late.resolve);
  try {
    await Promise.race([promise, late.promise]);
  } finally {
    cancel();
  }
}

/** `after` for a time that may have no end: then nothing is ever called. */
export const afterOrNever = (clock: Pick<Clock, "after">, ms: number | undefined, done: () => void): (() => void) =>
  ms === undefined ? () => {} : clock.after(ms, done);
