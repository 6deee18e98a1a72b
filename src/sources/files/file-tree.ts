import type { Stats } from "node:fs";
import { lstat, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { eachBounded, IO_WIDTH } from "./bounded.ts";
import type { ChangeQueue } from "./change-queue.ts";
import { DirectoryWatch, type EntryChange } from "./directory-watch.ts";
import type { FileLimits } from "./file-limits.ts";
import { isConfigName, isIgnoredName } from "./file-names.ts";
import { fileStats } from "./file-stats.ts";
import { LinkWatch } from "./link-watch.ts";
import { baseOf, emptyFound, type Found, faultOf, isUndecodable, scanTree } from "./scan-tree.ts";
import { isMissing } from "./system-error.ts";

/** What a look at some paths brought. */
export interface Sighting {
  readonly found: Found;
  /** Files that were known and are not there (any more). */
  readonly gone: ReadonlySet<string>;
  /** Named by a change: read even where the stats look the same, since two writes within a tick of the file system's clock do. */
  readonly named: ReadonlyMap<string, EntryChange>;
  /** Faults of directories that were known and are over. */
  readonly healed: ReadonlySet<string>;
}

export interface TreeDeps {
  readonly limits: FileLimits;
  readonly queue: ChangeQueue;
}

/** The configuration directory as it stands on disk: which files and directories there are, and a watch on each of them. */
export class FileTree {
  readonly #root: string;
  readonly #deps: TreeDeps;
  readonly #watch = new DirectoryWatch();
  readonly #links = new LinkWatch(this.#watch);
  readonly #known = new Set<string>();
  readonly #faults = new Map<string, string>();
  /** Links that led to nothing when they were seen last. */
  readonly #dangling = new Set<string>();
  #directories = new Set<string>();
  #rootInode: string | undefined;

  constructor(root: string, deps: TreeDeps) {
    this.#root = root;
    this.#deps = deps;
  }

  /**
   * Looks at the paths, or at everything when one of them is "". Throws when the root itself cannot be read: then nothing is known
   * about any file. So does a root that was replaced by an empty directory: an unmounted volume is no wish to delete everything.
   */
  async look(paths: ReadonlyMap<string, EntryChange>): Promise<Sighting> {
    this.#links.refresh();
    const everything = paths.has("") || (await this.#inodeOfRoot()) !== this.#rootInode;
    const found = emptyFound();
    if (everything) {
      await this.#links.follow("", this.#root, () => this.#deps.queue.mark(""));
      const inode = await this.#inodeOfRoot();
      await this.#scan("", found);
      if (inode !== this.#rootInode && found.files.size === 0 && this.#known.size > 0) throw new EmptyDirectoryError(this.#known.size);
      this.#rootInode = inode;
    } else {
      await eachBounded(paths.keys(), IO_WIDTH, (path) => this.#lookAt(path, found));
    }
    const seen = everything ? [""] : [...paths.keys()];
    await this.#followDangling(seen, found);
    return { found, gone: this.#missing(seen, found), named: paths, healed: this.#settleFaults(seen, found) };
  }

  /** From now on `path` is a file that is known. */
  keep(path: string): void {
    this.#known.add(path);
  }

  /** Watches the links that lead to the file. To be called before it is read, so that no swap is missed. */
  async follow(path: string): Promise<void> {
    await this.#links.follow(path, join(this.#root, path), () => this.#deps.queue.mark(path));
  }

  forget(path: string): void {
    this.#known.delete(path);
    if (!this.#dangling.has(path)) this.#links.forget(path);
  }

  close(): void {
    this.#watch.close();
  }

  get counts(): { readonly directories: number; readonly watches: number; readonly unwatched: readonly string[] } {
    return { directories: this.#directories.size, watches: this.#watch.size, unwatched: [...this.#watch.failed.values()] };
  }

  async #inodeOfRoot(): Promise<string> {
    return fileStats(await stat(this.#root)).inode;
  }

  async #lookAt(path: string, found: Found): Promise<void> {
    let stats: Stats;
    let link = false;
    try {
      stats = await lstat(join(this.#root, path));
      link = stats.isSymbolicLink();
      if (link) stats = await stat(join(this.#root, path));
    } catch (error) {
      if (isMissing(error) && link) found.dangling.add(path);
      // One that cannot be named cannot be asked about either, only seen in a list.
      const isThere = !isUndecodable(path) || (await namesIn(dirname(join(this.#root, path)))).includes(baseOf(path));
      const fault = isThere ? faultOf(path, error) : undefined;
      if (fault !== undefined) found.faults.set(path, fault);
      return;
    }
    if (stats.isDirectory()) await this.#scan(path, found);
    else if (stats.isFile() && isConfigName(baseOf(path))) {
      found.files.set(path, { stats: fileStats(stats), link });
    }
  }

  /** Watches for what links that lead to nothing may lead to again: who puts another directory in the place of one may take long over it. */
  async #followDangling(seen: readonly string[], { dangling }: Found): Promise<void> {
    for (const path of this.#dangling) {
      if (dangling.has(path) || !seen.some((one) => one === path || isBelow(path, one))) continue;
      this.#dangling.delete(path);
      if (!this.#known.has(path)) this.#links.forget(path);
    }
    for (const path of dangling) {
      this.#dangling.add(path);
      await this.follow(path);
    }
  }

  #scan(path: string, found: Found): Promise<void> {
    const { limits } = this.#deps;
    return scanTree(path, found, { root: this.#root, limits, onDirectory: (directory) => this.#watchDirectory(directory) });
  }

  #watchDirectory(directory: string): void {
    this.#directories.add(directory);
    const at = directory === "" ? "" : `${directory}/`;
    this.#watch.entries(join(this.#root, directory), (name, change) => {
      if (name === undefined) this.#deps.queue.mark(directory);
      else if (!isIgnoredName(name)) this.#deps.queue.mark(`${at}${name}`, change);
    });
  }

  /** Known files at or below the paths looked at that were not found, except below a directory that could not be read. */
  #missing(seen: readonly string[], found: Found): Set<string> {
    const gone = new Set<string>();
    const unread = [...found.faults.keys()].filter((path) => path.endsWith("/"));
    if (unread.includes("./")) return gone;
    const check = (path: string): void => {
      if (found.files.has(path) || found.faults.has(path) || unread.some((directory) => path.startsWith(directory))) return;
      gone.add(path);
    };
    for (const path of seen) if (this.#known.has(path)) check(path);
    const directories = new Set(seen.filter((path) => path === "" || this.#directories.has(path)));
    if (directories.size === 0) return gone;
    for (const known of this.#known) if (isWithin(known, directories)) check(known);
    this.#dropDirectories(directories, found, unread);
    return gone;
  }

  #dropDirectories(seen: ReadonlySet<string>, found: Found, unread: readonly string[]): void {
    const kept = new Set<string>();
    for (const directory of this.#directories) {
      const stays =
        found.directories.has(directory) ||
        !(seen.has(directory) || isWithin(directory, seen)) ||
        unread.some((prefix) => `${directory}/`.startsWith(prefix));
      if (stays) kept.add(directory);
      else this.#watch.forget(join(this.#root, directory));
    }
    this.#directories = kept;
  }

  /** Remembers the faults of directories; returns those that are over. */
  #settleFaults(seen: readonly string[], found: Found): Set<string> {
    const healed = new Set<string>();
    for (const path of this.#faults.keys()) {
      if (!found.faults.has(path) && seen.some((one) => one === "" || `${one}/` === path || isBelow(path, one))) healed.add(path);
    }
    for (const path of healed) this.#faults.delete(path);
    for (const [path, fault] of found.faults) {
      if (!path.endsWith("/")) continue;
      if (this.#faults.get(path) === fault) found.faults.delete(path);
      else this.#faults.set(path, fault);
    }
    return healed;
  }
}

/** The configuration directory was replaced by one without a single file. */
export class EmptyDirectoryError extends Error {
  override readonly name = "EmptyDirectoryError";

  constructor(files: number) {
    super(
      `it was replaced by an empty directory; the ${files} files read before stay in force until it holds a file again, or until a restart`,
    );
  }
}

const namesIn = (directory: string): Promise<readonly string[]> => readdir(directory).catch(() => []);

const isBelow = (path: string, directory: string): boolean => (directory === "" ? path !== "" : path.startsWith(`${directory}/`));

/** Whether one of many directories is above a path. The path is walked, not the directories: `chmod -R` touches every one of thousands at once. */
function isWithin(path: string, directories: ReadonlySet<string>): boolean {
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) if (directories.has(path.slice(0, at))) return true;
  return path !== "" && directories.has("");
}
