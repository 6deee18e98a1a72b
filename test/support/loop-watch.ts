import { writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

/*
 * Loaded into a program under test (`node --import`): how long its event loop was held, as a list of stretches in ms of processor time between two
 * ticks of a timer, and how much it had to do altogether. Processor time, not the clock's: on a busy machine the clock tells how much others had to do.
 * The clock's is there too, as Node itself counts it: how long what fell due had to wait.
 * At SIGUSR2 the longest are written to the file that LOOP_WATCH_FILE names, and counting starts anew.
 */

export interface LoopFigures {
  /** The longest stretches in ms of processor time, the longest first. */
  readonly longest: readonly number[];
  /** In ms of processor time. */
  readonly total: number;
  /** How long a timer of a few ms took, in ms by the clock. */
  readonly delay: { readonly p50: number; readonly p90: number; readonly max: number };
}

const TICK_MS = 2;
const KEPT = 50;

const NS_A_MS = 1_000_000;

const delays = monitorEventLoopDelay({ resolution: TICK_MS });
delays.enable();

let longest: number[] = [];
let total = 0;
let last = process.threadCpuUsage();

const timer = setInterval(() => {
  const { user, system } = process.threadCpuUsage(last);
  last = process.threadCpuUsage();
  const ms = (user + system) / 1000;
  total += ms;
  if (ms < (longest.at(-1) ?? 0) && longest.length >= KEPT) return;
  longest = [...longest, ms].sort((a, b) => b - a).slice(0, KEPT);
}, TICK_MS);
timer.unref();

process.on("SIGUSR2", () => {
  const delay = { p50: delays.percentile(50) / NS_A_MS, p90: delays.percentile(90) / NS_A_MS, max: delays.max / NS_A_MS };
  writeFileSync(process.env.LOOP_WATCH_FILE ?? "", JSON.stringify({ longest, total, delay } satisfies LoopFigures));
  delays.reset();
  longest = [];
  total = 0;
});
