import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Kills a process that may be gone already. */
export function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}

/** A directory that goes with the test that made it. */
export async function tempDir(prefix = "istio-"): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), prefix));
  // Whoever was killed a moment ago may still be making a file in it.
  onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  return dir;
}
