import { execFile } from "node:child_process";

export interface ToolResult {
  /** Undefined where it could not be started. */
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of the machine to its end, `input` on its standard input. Never rejects. */
export type RunTool = (command: string, args: readonly string[], input?: string) => Promise<ToolResult>;

const LONGEST_MS = 60_000;
const LARGEST_OUTPUT = 64 * 1024 * 1024;

/** Runs programs with the given environment, behind the words of another command where there are any (`nsenter …`). */
export function createRunTool(env: NodeJS.ProcessEnv, before: readonly string[] = []): RunTool {
  return (command, args, input) =>
    new Promise((resolve) => {
      const [first = command, ...rest] = [...before, command, ...args];
      const child = execFile(first, rest, { env, timeout: LONGEST_MS, maxBuffer: LARGEST_OUTPUT }, (error, stdout, stderr) => {
        const status = error === null ? 0 : typeof error.code === "number" ? error.code : undefined;
        resolve({ status, stdout, stderr: stderr || (status === undefined ? (error?.message ?? "") : "") });
      });
      child.stdin?.on("error", () => {});
      child.stdin?.end(input ?? "");
    });
}
