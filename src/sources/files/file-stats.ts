import type { Stats } from "node:fs";

/** What tells one version of a file from another without reading it. */
export interface FileStats {
  /** Changes whenever the file was written, replaced, or its permissions changed. */
  readonly ident: string;
  /** Device and inode. */
  readonly inode: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** Of what the file system says about a file. */
export function fileStats(stats: Stats): FileStats {
  const inode = `${stats.dev}:${stats.ino}`;
  return { ident: `${inode}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`, inode, size: stats.size, mtimeMs: stats.mtimeMs };
}
