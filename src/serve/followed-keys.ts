import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KeyLocation } from "../generate/policies/key-location.ts";

export interface FollowedKeysOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly refreshMs: number;
  /** The key set at a place, in a form that Envoy takes. Rejects with a sentence. */
  readonly read: (location: KeyLocation) => Promise<string>;
  /** A place has these keys now; undefined when it has none any more, or nobody asks for them. */
  readonly found: (id: string, keys: string | undefined) => void;
}

/** Keeps the keys of token issuers fetched. */
export interface FollowedKeys {
  /** Fetches from exactly these places from now on. */
  follow(locations: readonly KeyLocation[]): void;
  /** Resolves when every place has been asked once. */
  asked(): Promise<void>;
  stop(): void;
}

/** A place that fails is asked again soon, then less and less often, but never less often than one that does not. */
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
/** Keys that could not be renewed for so long are believed no more; Istio's time. */
const STALE_MS = 7 * 24 * 3_600_000;
/** Requests under way at the same time, however many places policies name. */
const MOST_AT_ONCE = 16;

interface Place {
  location: KeyLocation;
  keys: string | undefined;
  /** When they were fetched. */
  at: number;
  failures: number;
  cancel: () => void;
  first: Promise<void>;
}

/**
 * Follows places. The last good answer stays in force over failures for a week; without one there are no keys, and then nobody's tokens are
 * believed.
 */
export function followKeys(options: FollowedKeysOptions): FollowedKeys {
  const { clock, log, refreshMs, read, found } = options;
  const places = new Map<string, Place>();
  const atOnce = limiter(MOST_AT_ONCE);

  const ask = async (place: Place): Promise<void> => {
    const { id, uri } = place.location;
    const isFollowed = (): boolean => places.get(id) === place;
    const answer = await atOnce(async () => (isFollowed() ? { keys: await read(place.location) } : undefined)).catch(messageOf);
    if (answer === undefined || !isFollowed()) return;
    if (typeof answer === "string") failed(place, answer, options);
    else {
      if (place.failures > 0) log.info({ uri }, "the keys of a token issuer can be fetched again");
      if (place.keys !== answer.keys) found(id, answer.keys);
      Object.assign(place, { keys: answer.keys, at: clock.monotonic(), failures: 0 });
    }
    const retryMs = Math.min(FIRST_RETRY_MS * 2 ** (place.failures - 1), LAST_RETRY_MS);
    place.cancel = clock.after(place.failures === 0 ? refreshMs : Math.min(retryMs, refreshMs), () => void ask(place));
  };

  const drop = (id: string, place: Place): void => {
    place.cancel();
    places.delete(id);
  };

  return {
    follow(locations) {
      const wanted = new Set(locations.map(({ id }) => id));
      for (const [id, place] of places) {
        if (wanted.has(id)) continue;
        drop(id, place);
        if (place.keys !== undefined) found(id, undefined);
      }
      for (const location of locations) {
        const known = places.get(location.id);
        if (known !== undefined) known.location = location;
        else {
          const place: Place = { location, keys: undefined, at: 0, failures: 0, cancel: () => {}, first: Promise.resolve() };
          places.set(location.id, place);
          place.first = ask(place);
        }
      }
    },
    asked: async () => {
      await Promise.all([...places.values()].map(({ first }) => first));
    },
    stop() {
      for (const [id, place] of places) drop(id, place);
    },
  };
}

/** Keys that are too old to be believed go; the first failure in a row is told. */
function failed(place: Place, problem: string, { clock, log, found }: FollowedKeysOptions): void {
  const { id, uri } = place.location;
  place.failures += 1;
  if (place.keys !== undefined && clock.monotonic() - place.at > STALE_MS) {
    place.keys = undefined;
    found(id, undefined);
  }
  if (place.failures > 1) return;
  const effect = place.keys === undefined ? "its tokens are refused" : "the keys fetched last stay in force";
  log.warn({ uri, reason: problem }, `the keys of a token issuer cannot be fetched; ${effect}`);
}

/** Lets at most so many run at a time; the others wait in line. */
function limiter(most: number): <T>(task: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (task) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
