import { constants, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** The heap as it is when garbage is left out of account. */
export interface LiveHeap {
  /** What was left after the last full collection. */
  liveBytes(): number;
  limitBytes(): number;
  /** Collects now. The process stands still meanwhile, so this is for when it would otherwise die. */
  collect(): void;
  stop(): void;
}

const { NODE_PERFORMANCE_GC_MAJOR: MAJOR } = constants;

/** What entries about collections have beyond others. */
interface GcEntry {
  readonly detail?: { readonly kind?: number };
}

/**
 * Follows the heap from one full collection to the next: nearer to its limit there are more of them, so the figure is fresh when it
 * matters. `words` are the options the process was started with: of the limit that V8 tells, a large part is for what is new and does not last.
 */
export function followHeap(words: readonly string[]): LiveHeap {
  const limit = oldSpaceLimit(words) ?? getHeapStatistics().heap_size_limit;
  let live = 0;
  const measure = (): void => {
    live = getHeapStatistics().used_heap_size;
  };
  const observer = new PerformanceObserver((list) => {
    if (list.getEntries().some((entry: PerformanceEntry & GcEntry) => entry.detail?.kind === MAJOR)) measure();
  });
  observer.observe({ entryTypes: ["gc"] });
  let collector: (() => void) | undefined;
  return {
    liveBytes: () => live,
    limitBytes: () => limit,
    collect() {
      collector ??= exposedCollector();
      collector();
      measure();
    },
    stop: () => observer.disconnect(),
  };
}

const MB = 1024 * 1024;

/** What `--max-old-space-size` says, in bytes; the last one counts. */
export function oldSpaceLimit(words: readonly string[]): number | undefined {
  const sizes = words.flatMap((word) => /^--max[-_]old[-_]space[-_]size=(\d+)$/.exec(word)?.[1] ?? []);
  const last = Number(sizes.at(-1) ?? 0);
  return last > 0 ? last * MB : undefined;
}

/** V8 gives its collector to contexts made after it is asked to. */
function exposedCollector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}
