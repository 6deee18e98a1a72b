import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Pressure } from "../xds/pressure.ts";
import type { HealthCheck } from "./health.ts";
import type { LiveHeap } from "./live-heap.ts";

/** How much memory there is and how much of it is used. */
export interface MemoryState {
  readonly pressure: Pressure;
  /** Share in use: of the process or of the heap, whichever is higher. */
  readonly used: number;
  /** What the process may use in all; undefined where nothing limits it. */
  readonly limitBytes: number | undefined;
  /** What was left of the heap after the last full collection. */
  readonly heapBytes: number;
}

export interface MemoryWatch {
  state(): MemoryState;
  check(): HealthCheck;
  stop(): void;
}

export interface MemoryWatchOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** What the process may use in all; undefined where nothing limits it. The heap has a limit of its own. */
  limitBytes(): number | undefined;
  /** What the process has now. */
  residentBytes(): number;
  readonly heap: Pick<LiveHeap, "liveBytes" | "limitBytes" | "collect" | "stop">;
  /** Called at each look while memory is short, and once when it no longer is. */
  relieve(pressure: Pressure): void;
}

const LOOK_MS = 250;
/** While hardly anybody is let in little is allocated, and so nothing collected: it is done now and then. */
const COLLECT_MS = { none: Number.POSITIVE_INFINITY, tight: 15_000, critical: 5_000 } as const satisfies Record<Pressure, number>;
/** V8 gives up before a heap is full, when it does little else than collecting. */
const HEAP_USABLE = 0.8;
/** Shares at which the next degree begins, and at which it ends: apart, so that it does not begin again at once. */
const BEGINS = { tight: 0.8, critical: 0.92 } as const;
const ENDS = { tight: 0.7, critical: 0.85 } as const;

/**
 * Looks after memory, so that a control plane that is given too much to do lets go of something instead of being killed: first of what can be
 * made again and of those who come, at last of clients that do not read. A look costs some microseconds.
 */
export function watchMemory(options: MemoryWatchOptions): MemoryWatch {
  const { clock, log, relieve, heap } = options;
  let state: MemoryState = { pressure: "none", used: 0, limitBytes: options.limitBytes(), heapBytes: 0 };
  let collectedAt = clock.monotonic();
  const used = (limitBytes: number | undefined): number =>
    Math.max(limitBytes === undefined ? 0 : options.residentBytes() / limitBytes, heap.liveBytes() / (heap.limitBytes() * HEAP_USABLE));
  const look = (): void => {
    const before = state.pressure;
    const limitBytes = options.limitBytes();
    const share = used(limitBytes);
    state = { pressure: nextPressure(before, share), used: share, limitBytes, heapBytes: heap.liveBytes() };
    const { pressure } = state;
    if (pressure !== before) tell(log, state);
    if (pressure !== "none" || before !== "none") relieve(pressure);
    if (clock.monotonic() - collectedAt >= COLLECT_MS[pressure]) {
      collectedAt = clock.monotonic();
      heap.collect();
    }
    cancel = clock.after(LOOK_MS, look);
  };
  let cancel = clock.after(LOOK_MS, look);
  return {
    state: () => state,
    check: () => checkOf(state),
    stop() {
      cancel();
      heap.stop();
    },
  };
}

/** What the process may use: what the operator says, else what the cgroup allows. That is read from files, and hardly ever changes while a process runs. */
export function followMemoryLimit(clock: Pick<Clock, "monotonic">, settingBytes: () => number): () => number | undefined {
  let allowed = 0;
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    const said = settingBytes();
    if (said <= 0 && clock.monotonic() - readAt >= READ_LIMIT_MS) {
      readAt = clock.monotonic();
      allowed = process.constrainedMemory();
    }
    const bytes = said > 0 ? said : allowed;
    return bytes > 0 && bytes < NO_LIMIT ? bytes : undefined;
  };
}

const READ_LIMIT_MS = 10_000;

/** Where a cgroup has no limit, some systems say a number beyond all memory. */
const NO_LIMIT = 2 ** 50;

/** The degree that follows from the share in use: begun at one share, ended at a lower one. */
export function nextPressure(before: Pressure, used: number): Pressure {
  if (used >= BEGINS.critical || (before === "critical" && used >= ENDS.critical)) return "critical";
  if (used >= BEGINS.tight || (before !== "none" && used >= ENDS.tight)) return "tight";
  return "none";
}

function tell(log: Log, state: MemoryState): void {
  const what = { used: percent(state.used), ...(state.limitBytes !== undefined && { limit_bytes: state.limitBytes }) };
  if (state.pressure === "none") log.info(what, "there is enough memory again");
  else log.warn(what, SENTENCES[state.pressure]);
}

const SENTENCES = {
  none: "enough",
  tight: "memory is short: proxies that connect wait longer, and caches are dropped; give this process more, or run more of them",
  critical:
    "memory is about to run out: no proxies are let in, and those that do not read are cut; give this process more, or run more of them",
} as const satisfies Record<Pressure, string>;

const percent = (share: number): string => `${Math.round(share * 100)} %`;

const checkOf = ({ pressure, used }: MemoryState): HealthCheck => ({
  name: "memory",
  ok: pressure === "none",
  blocks: false,
  detail: `${percent(used)} used: ${SENTENCES[pressure]}`,
});
