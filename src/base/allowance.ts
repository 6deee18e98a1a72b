import type { Clock } from "./clock.ts";

export interface AllowanceOptions {
  readonly clock: Pick<Clock, "monotonic">;
  /** What each may have at once, and how much of it comes back in a second. */
  readonly each: Rate;
  /** The same for all together: who has many names gets no more by them. */
  readonly all: Rate;
}

export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Says how often strangers may have something done that costs others. */
export interface Allowance {
  /** Takes one from what `who` may have; false where nothing is left of it. */
  take(who: string): boolean;
}

interface Bucket {
  left: number;
  at: number;
}

/** Names beyond this are forgotten, those first that were not seen for longest: they begin anew, within what all may have. */
const MOST_NAMES = 10_000;

/** Everybody begins with all that one may have. */
export function createAllowance({ clock, each, all }: AllowanceOptions): Allowance {
  const buckets = new Map<string, Bucket>();
  const total: Bucket = { left: all.burst, at: clock.monotonic() };
  const fill = (bucket: Bucket, { burst, perSecond }: Rate): Bucket => {
    const now = clock.monotonic();
    bucket.left = Math.min(burst, bucket.left + ((now - bucket.at) / 1_000) * perSecond);
    bucket.at = now;
    return bucket;
  };
  return {
    take(who) {
      const own = fill(buckets.get(who) ?? { left: each.burst, at: clock.monotonic() }, each);
      buckets.delete(who);
      buckets.set(who, own);
      const [oldest] = buckets.keys();
      if (buckets.size > MOST_NAMES && oldest !== undefined) buckets.delete(oldest);
      if (own.left < 1 || fill(total, all).left < 1) return false;
      own.left -= 1;
      total.left -= 1;
      return true;
    },
  };
}
