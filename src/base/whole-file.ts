import { link, mkdir, open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes a file, for its owner's eyes where nothing else is said: beside its place, flushed and moved there, so that after a crash the old or the new content is
 * there, never a part. Calls for one path must not overlap.
 */
export async function writeWholeFile(path: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  const beside = `${path}.tmp`;
  await writeBeside(path, { beside, content, mode });
  await rename(beside, path);
}

/** The same for files that belong together: nothing is replaced before all of them are written. */
export async function writeWholeFiles(files: readonly WholeFile[]): Promise<void> {
  for (const { path, content, mode } of files) await writeBeside(path, { beside: `${path}.tmp`, content, mode });
  for (const { path } of files) await rename(`${path}.tmp`, path);
}

export interface WholeFile {
  readonly path: string;
  readonly content: string | Uint8Array;
  readonly mode: number;
}

/** The same for a file that is made once: one that another process has put there meanwhile stays. */
export async function writeNewFile(path: string, content: string | Uint8Array): Promise<void> {
  const beside = `${path}.${process.pid}.tmp`;
  await writeBeside(path, { beside, content, mode: 0o600 });
  try {
    await link(beside, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    await unlink(beside);
  }
}

interface Draft {
  readonly beside: string;
  readonly content: string | Uint8Array;
  readonly mode: number;
}

async function writeBeside(path: string, { beside, content, mode }: Draft): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const handle = await open(beside, "w", mode);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
