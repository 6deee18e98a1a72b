import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { DIES_WITH_US } from "./guard.ts";

/** A program of the cluster that can be started again after it was ended. What it writes goes to a file. */
export interface Program {
  readonly pid: () => number;
  /** The last lines it wrote. */
  readonly log: () => string;
  start(): void;
  /** Throws with what it wrote last where it has ended by itself. */
  assertRunning(): void;
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Stands still, with its connections open, until resumed. */
  pause(): void;
  resume(): void;
}

/** Describes a program; `start` starts it. */
export function defineProgram(name: string, command: readonly string[], logFile: string): Program {
  let child: ChildProcess | undefined;
  const log = (): string => readFileSync(logFile, "utf8").split("\n").slice(-15).join("\n");
  const running = (): boolean => child !== undefined && child.exitCode === null && child.signalCode === null;
  return {
    pid: () => child?.pid ?? 0,
    log,
    start() {
      const out = openSync(logFile, "a");
      const [first = "", ...words] = [...DIES_WITH_US, ...command];
      child = spawn(first, words, { stdio: ["ignore", out, out] });
      closeSync(out);
    },
    assertRunning() {
      if (!running()) throw new Error(`${name} has ended (${child?.exitCode ?? child?.signalCode}); it wrote last:\n${log()}`);
    },
    stop: (signal = "SIGTERM") =>
      new Promise((resolve) => {
        if (child === undefined || !running()) return resolve();
        child.once("exit", () => resolve());
        child.kill("SIGCONT");
        child.kill(signal);
      }),
    pause() {
      child?.kill("SIGSTOP");
      while (child?.pid !== undefined && !standsStill(child.pid)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    },
    resume: () => void child?.kill("SIGCONT"),
  };
}

/** Whether every thread has stopped: the signal is on its way for a while on a busy machine. A process that is gone stands still too. */
function standsStill(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
      return "TtZX".includes(stat.slice(stat.lastIndexOf(")") + 2)[0] ?? "");
    });
  } catch {
    return true;
  }
}
