import { spawn } from "node:child_process";

/** Cleans up after a test process that ends without cleaning up itself. */
export interface Guard {
  /** A shell command to run should this process end without `dismiss`; the last one told runs first. */
  onDeath(command: string): void;
  /** All is cleaned up: nothing is left to do. */
  dismiss(): void;
}

/** Everything told is a line on a pipe. The pipe ends with this process, however it ends, and the shell at its other end goes to work. */
export function startGuard(): Guard {
  const script = `todo=; while read -r line; do [ "$line" = dismissed ] && exit; todo="$line
$todo"; done; eval "$todo"`;
  const shell = spawn("sh", ["-c", script], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  shell.stdin.on("error", () => {});
  shell.unref();
  return {
    onDeath: (command) => void shell.stdin.write(`${command}\n`),
    dismiss: () => void shell.stdin.end("dismissed\n"),
  };
}

/** Words to put before a command so that it is killed when this process ends. */
export const DIES_WITH_US: readonly string[] = ["setpriv", "--pdeathsig", "KILL"];
