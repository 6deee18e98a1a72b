import { mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes a file, for its owner's eyes where nothing else is said: beside its place, flushed and moved there, so that after a crash the old or the new content is
 * there, never a part. Calls for one path must not overlap.
 */
export async function writeWholeFile(path: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const beside = `${path}.new`;
  const handle = await open(beside, "w", mode);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(beside, path);
}
