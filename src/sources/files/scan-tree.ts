import type { Dirent, Stats } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { eachBounded, IO_WIDTH } from "./bounded.ts";
import type { FileLimits } from "./file-limits.ts";
import { isConfigName, isIgnoredName } from "./file-names.ts";
import { type FileStats, fileStats } from "./file-stats.ts";
import { isMissing, systemReason } from "./system-error.ts";

export interface FoundFile {
  readonly stats: FileStats;
  /** Reached through a link. */
  readonly link: boolean;
}

/** What a scan saw. Paths are below the root, with `/`. */
export interface Found {
  readonly files: Map<string, FoundFile>;
  readonly directories: Set<string>;
  /** Path → sentence; directories end with `/`. What was known below an unreadable directory is not known to be gone. */
  readonly faults: Map<string, string>;
  /** Links to a directory they lie in. They add nothing, so they are left out. */
  readonly cycles: Set<string>;
  /** Links that lead to nothing, for now. */
  readonly dangling: Set<string>;
}

export interface ScanOptions {
  readonly root: string;
  readonly limits: FileLimits;
  /** Called before a directory is listed, so that nothing that happens after the listing is missed. */
  readonly onDirectory: (path: string) => void;
}

/** What has seen nothing yet. */
export const emptyFound = (): Found => ({
  files: new Map(),
  directories: new Set(),
  faults: new Map(),
  cycles: new Set(),
  dangling: new Set(),
});

/** Lists the configuration files in the directory `at` and below, following links to files and directories but no cycle. */
export async function scanTree(at: string, found: Found, options: ScanOptions): Promise<void> {
  const ancestors: string[] = [];
  for (const path of parentsOf(at)) {
    const stats = await stat(join(options.root, path)).catch(() => undefined);
    if (stats === undefined) return;
    ancestors.push(fileStats(stats).inode);
  }
  await scanDirectory(at, ancestors, { found, options });
}

interface Scan {
  readonly found: Found;
  readonly options: ScanOptions;
}

async function scanDirectory(path: string, ancestors: readonly string[], scan: Scan): Promise<void> {
  const { found, options } = scan;
  const { limits, root } = options;
  const asDirectory = path === "" ? "./" : `${path}/`;
  let entries: Dirent[];
  let inode: string;
  try {
    inode = fileStats(await stat(join(root, path))).inode;
    if (ancestors.includes(inode)) {
      found.cycles.add(path);
      return;
    }
    if (ancestors.length >= limits.maxDepth)
      found.faults.set(asDirectory, `directories nest more than ${limits.maxDepth} levels deep here`);
    else if (found.directories.size >= limits.maxDirectories)
      found.faults.set("./", `there are more than ${limits.maxDirectories} directories`);
    else {
      found.directories.add(path);
      options.onDirectory(path);
    }
    if (!found.directories.has(path)) return;
    entries = await readdir(join(root, path), { withFileTypes: true });
  } catch (error) {
    if (path === "") throw error;
    if (!isMissing(error)) found.faults.set(asDirectory, `the directory cannot be read: ${systemReason(error)}`);
    else if (isUndecodable(path)) found.faults.set(asDirectory, UNDECODABLE);
    return;
  }
  const directories = await sortEntries(path, entries, scan);
  for (const directory of directories) await scanDirectory(directory, [...ancestors, inode], scan);
}

/** Puts the files of one directory into `found`; returns its directories in order of name. */
async function sortEntries(path: string, entries: readonly Dirent[], { found, options }: Scan): Promise<string[]> {
  const directories: string[] = [];
  const files: { readonly path: string; readonly link: boolean }[] = [];
  for (const entry of entries) {
    if (isIgnoredName(entry.name)) continue;
    const below = path === "" ? entry.name : `${path}/${entry.name}`;
    if (entry.isDirectory()) directories.push(below);
    else if (entry.isSymbolicLink() || (entry.isFile() && isConfigName(entry.name)))
      files.push({ path: below, link: entry.isSymbolicLink() });
  }
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  await eachBounded(files, IO_WIDTH, async (file) => {
    let stats: Stats;
    try {
      stats = await stat(join(options.root, file.path));
    } catch (error) {
      if (isMissing(error) && file.link) found.dangling.add(file.path);
      const fault = faultOf(file.path, error);
      if (fault !== undefined) found.faults.set(file.path, fault);
      return;
    }
    if (stats.isDirectory()) directories.push(file.path);
    else if (!stats.isFile() || !isConfigName(baseOf(file.path))) return;
    else if (found.files.size >= options.limits.maxFiles)
      found.faults.set("./", `there are more than ${options.limits.maxFiles} files; the rest is not read`);
    else found.files.set(file.path, { stats: fileStats(stats), link: file.link });
  });
  return directories.sort();
}

/** What to say of a file about which the system says this; undefined where there is nothing to say, since it is gone or none of ours. */
export function faultOf(path: string, error: unknown): string | undefined {
  if (!isConfigName(baseOf(path))) return undefined;
  if (!isMissing(error)) return `the file cannot be read: ${systemReason(error)}`;
  return isUndecodable(path) ? UNDECODABLE : undefined;
}

/** A name that is not UTF-8 is read with this in it, and so is never found. */
export const isUndecodable = (path: string): boolean => baseOf(path).includes("\u{fffd}");
const UNDECODABLE = "its name is not UTF-8, and cannot be used: rename it";

/** The directories above `path`, the root first. */
function parentsOf(path: string): string[] {
  if (path === "") return [];
  const parts = path.split("/");
  return parts.map((_, index) => parts.slice(0, index).join("/"));
}

/** The last part of a path. */
export const baseOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
