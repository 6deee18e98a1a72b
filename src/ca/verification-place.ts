import type { Clock } from "../base/clock.ts";

/** An answer from another thread that took longer than this has waited for the main one: the verification itself takes a tenth of it. */
const SLOW_MS = 2;
/** How long it is then left alone. */
const HERE_MS = 200;

/**
 * Decides where the signature of a request is verified. Another thread takes it off the main one, but its answer is heard a turn of the loop later,
 * and while a push goes out turns are of milliseconds: then it is done at once, on the main thread.
 */
export function verificationPlace(clock: Pick<Clock, "monotonic">): <T>(verify: (place: "here" | "elsewhere") => Promise<T>) => Promise<T> {
  let hereUntil = Number.NEGATIVE_INFINITY;
  return async (verify) => {
    const start = clock.monotonic();
    if (start < hereUntil) return verify("here");
    try {
      return await verify("elsewhere");
    } finally {
      const end = clock.monotonic();
      if (end - start > SLOW_MS) hereUntil = end + HERE_MS;
    }
  };
}
