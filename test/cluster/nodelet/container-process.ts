import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fchmodSync, openSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { DIES_WITH_US } from "../guard.ts";
import { type ContainerPlan, containerScript, type ProgramPlan, programWords } from "./container-script.ts";

/** How a process ended; a signal is 128 and its number, as shells count. */
export interface Exit {
  readonly code: number;
}

export interface ExecResult extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** One run of a container. */
export interface ContainerProcess {
  readonly exited: Promise<Exit>;
  /** To the container's first process. */
  signal(signal: NodeJS.Signals): void;
  /** Ends it and all it started, at once. */
  kill(): void;
  /** Runs something beside it, as `kubectl exec` does. */
  exec(program: ProgramPlan, timeoutMs: number): Promise<ExecResult>;
}

export interface ProcessOptions {
  /** Words that lead into the pod's network; none for the machine's. */
  readonly enter: readonly string[];
  readonly plan: Omit<ContainerPlan, "layer">;
  /** For files of this container; on this machine. */
  readonly dir: string;
  readonly logFile: string;
}

const SIGNALS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGTERM: 15,
};

/** Starts a container; resolves when its program runs, or could not be started. All its processes end with the first one, and with ours. */
export async function startContainerProcess({ enter, plan, dir, logFile }: ProcessOptions): Promise<ContainerProcess> {
  const layer = join(dir, "layer");
  await mkdir(layer, { recursive: true });
  const script = join(dir, "start.sh");
  await writeFile(script, containerScript({ ...plan, layer }), { mode: 0o700 });
  const isolate = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child"];
  const out = openSync(logFile, "a");
  // Programs that open /dev/stdout need not be ours.
  fchmodSync(out, 0o666);
  const [command = "", ...words] = [...DIES_WITH_US, ...enter, ...isolate, "sh", script];
  const child = spawn(command, words, { stdio: ["ignore", out, out, "pipe"] });
  closeSync(out);
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once("error", reject).once("exit", (code, signal) => resolve({ code: code ?? 128 + (SIGNALS[signal ?? ""] ?? 0) }));
  });
  const inPlace = new Promise((resolve) => child.stdio[3]?.once("data", resolve).on("error", () => {}));
  await Promise.race([inPlace, exited]);
  return {
    exited,
    signal(signal) {
      const first = firstProcess(child);
      if (first !== undefined) kill(first, signal);
    },
    kill: () => void child.kill("SIGKILL"),
    async exec(program, timeoutMs) {
      const first = firstProcess(child);
      if (first === undefined) return { code: 126, stdout: "", stderr: "the container does not run" };
      const inside = ["nsenter", "--target", String(first), "--mount", "--uts", "--pid", "--net"];
      return collect([...inside, ...programWords(program)], timeoutMs);
    },
  };
}

/** `unshare` stays on our side; its only child is the first process of the container. */
function firstProcess({ pid, exitCode, signalCode }: ChildProcess): number | undefined {
  if (pid === undefined || exitCode !== null || signalCode !== null) return undefined;
  try {
    const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
    return first === undefined || first === "" ? undefined : Number(first);
  } catch {
    return undefined;
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It is gone.
  }
}

/** Runs a command to its end, or kills it and whatever it started when its time is over. */
export function collect(command: readonly string[], timeoutMs: number): Promise<ExecResult> {
  return new Promise((resolve, reject) => {
    const [first = "", ...words] = command;
    const child = spawn(first, words, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    const said = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) child[name].on("data", (chunk: Buffer) => (said[name] += chunk.toString()));
    const cancel = systemClock.after(timeoutMs, () => kill(-(child.pid ?? 0), "SIGKILL"));
    child.once("error", reject).once("close", (code) => {
      cancel();
      resolve({ code: code ?? 137, ...said });
    });
  });
}
