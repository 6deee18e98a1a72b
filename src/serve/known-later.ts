import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";

/** Something that is found at the start, or only after it. */
export interface KnownLater<T> {
  /** Undefined as long as it is not known. */
  readonly current: T | undefined;
  /** Why the last attempt failed. */
  readonly fault: string | undefined;
  /** Calls back once it is known; at once where it is. */
  whenKnown(known: (value: T) => void): void;
  stop(): void;
}

export interface KnownLaterOptions<T> {
  find(): Promise<T>;
  /** The start goes on without it after this long; undefined: it is waited for, and a failure is one of the start. */
  readonly patienceMs: number | undefined;
  readonly clock: Clock;
  /** An attempt after the start failed; another follows. */
  failed(reason: string): void;
}

const RETRY_MS = 5_000;

/** Resolves when it is known, or when patience has ended; rejects where it cannot be found before that. After that it is looked for until it is found. */
export async function knownLater<T>({ find, patienceMs, clock, failed }: KnownLaterOptions<T>): Promise<KnownLater<T>> {
  const ending = new AbortController();
  const waiting: ((value: T) => void)[] = [];
  let current: T | undefined;
  let fault: string | undefined;
  const take = (value: T): void => {
    [current, fault] = [value, undefined];
    for (const known of waiting.splice(0)) known(value);
  };
  const tryAgain = async (reason: unknown): Promise<void> => {
    fault = messageOf(reason);
    failed(fault);
    await clock.sleep(RETRY_MS, ending.signal).catch(() => undefined);
    if (!ending.signal.aborted) await find().then(takeUnlessStopped, tryAgain);
  };
  const takeUnlessStopped = (value: T): void => {
    if (!ending.signal.aborted) take(value);
  };
  const first = find();
  if (patienceMs === undefined) take(await first);
  else {
    const { promise: impatient, resolve } = Promise.withResolvers<"late">();
    const cancel = clock.after(patienceMs, () => resolve("late"));
    const inTime = await Promise.race([first.then((value) => ({ value })), impatient]).finally(cancel);
    if (inTime === "late") void first.then(takeUnlessStopped, tryAgain);
    else take(inTime.value);
  }
  return {
    get current() {
      return current;
    },
    get fault() {
      return fault;
    },
    whenKnown(known) {
      if (current === undefined) waiting.push(known);
      else known(current);
    },
    stop: () => ending.abort(),
  };
}
