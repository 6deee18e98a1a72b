import { spawn } from "node:child_process";
import type { Clock } from "../../base/clock.ts";

const LONGEST_OUTPUT = 1_024;

/**
 * Runs a command that says by its exit status whether the workload is well; gives what is wrong, undefined where nothing is. One that takes too
 * long is ended with all it has started, so that hung probes do not pile up.
 */
export function runCommand(command: readonly string[], timeoutMs: number, clock: Clock): Promise<string | undefined> {
  const [file = "", ...words] = command;
  return new Promise((resolve) => {
    const child = spawn(file, words, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    let output = "";
    let late = false;
    const cancel = clock.after(timeoutMs, () => {
      late = true;
      endGroup(child.pid);
      child.stdout.destroy();
      child.stderr.destroy();
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (bytes: Buffer) => (output = (output + bytes.toString("utf8")).slice(0, LONGEST_OUTPUT)));
    child.once("error", (error) => {
      cancel();
      resolve(`${file} cannot be run: ${error.message}`);
    });
    child.once("exit", (status, signal) => {
      cancel();
      if (late) resolve(`${file} did not end in time`);
      else if (status === 0) resolve(undefined);
      else resolve([`${file} ended with ${signal ?? `status ${status}`}`, ...(output.trim() === "" ? [] : [output.trim()])].join(": "));
    });
  });
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
