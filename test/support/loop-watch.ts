import { writeFileSync } from "node:fs";

/*
 * Loaded into a program under test (`node --import`): how long its event loop was held, as a list of stretches in ms of processor time between two
 * ticks of a timer, and how much it had to do altogether. Processor time, not the clock's: on a busy machine the clock tells how much others had to do.
 * At SIGUSR2 the longest are written to the file that LOOP_WATCH_FILE names, and counting starts anew.
 */

/** In ms of processor time. */
export interface LoopFigures {
  /** The longest stretches, the longest first. */
  readonly longest: readonly number[];
  readonly total: number;
}

const TICK_MS = 2;
const KEPT = 50;

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
  writeFileSync(process.env.LOOP_WATCH_FILE ?? "", JSON.stringify({ longest, total } satisfies LoopFigures));
  longest = [];
  total = 0;
});
