import { execFile } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

/** What a child is given as its standard output and error. */
export interface PassedOutput {
  readonly stdout: number;
  readonly stderr: number;
  /** Closes what only the child needs, once it runs. */
  release(): void;
}

/**
 * What a child writes goes where our own output goes, and the child can open it again by name. Access logs do that with `/dev/stdout`, and Envoy refuses each listener
 * whose log it cannot open: neither a socket (of the journal, under systemd) nor the terminal or file of another user (after `su`) can be. Such an output goes through a
 * pipe of ours instead, which ends with us: a child that outlives us loses these lines and nothing else.
 */
export async function passOutput(workDir: string): Promise<PassedOutput> {
  const stdout = await reopenable(1, process.stdout, workDir);
  const stderr = await reopenable(2, process.stderr, workDir);
  return {
    stdout,
    stderr,
    release() {
      for (const descriptor of [stdout, stderr]) if (descriptor > 2) closeSync(descriptor);
    },
  };
}

async function reopenable(descriptor: 1 | 2, output: NodeJS.WritableStream, workDir: string): Promise<number> {
  try {
    closeSync(openSync(`/dev/fd/${descriptor}`, constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK));
    return descriptor;
  } catch {
    // Without a pipe it is as it was: only who opens it again notices.
    return await pipeTo(output, workDir).catch(() => descriptor);
  }
}

/** The end to write to. Node itself only makes sockets, so it is a named one, whose name goes as soon as both ends are open. */
async function pipeTo(output: NodeJS.WritableStream, workDir: string): Promise<number> {
  const directory = await mkdtemp(join(workDir, ".output-"));
  try {
    const path = join(directory, "pipe");
    await promisify(execFile)("mkfifo", ["-m", "600", path]);
    const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writing = openSync(path, constants.O_WRONLY);
    new Socket({ fd: reading, readable: true, writable: false })
      .on("error", () => {})
      .on("data", (bytes) => output.write(bytes))
      .unref();
    return writing;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
