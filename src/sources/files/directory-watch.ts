import { type FSWatcher, statSync, watch } from "node:fs";
import { basename } from "node:path";
import { messageOf } from "../../base/errors.ts";

/** What is told of an entry: that it came, went or gave way to another (`placed`), or no more than that something happened to it. */
export type EntryChange = "placed" | "any";

/** Told of the entry that changed; undefined when the system did not say which. */
export type OnEntry = (name: string | undefined, change: EntryChange) => void;

/** Elsewhere than with inotify a write may be told as a rename. */
const TELLS_WRITES = process.platform === "linux";

interface Watched {
  readonly id: string;
  readonly watcher: FSWatcher;
  onDirectory: OnEntry | undefined;
  readonly onName: Map<string, Set<() => void>>;
  /** Something happened to the directory itself: it may be gone, and another in its place with the same inode. */
  isStale: boolean;
}

/**
 * One inotify watch per directory, whoever asks for it. Node's own recursive mode follows neither links nor directories that are
 * moved in, so the tree is watched piece by piece. A watch that cannot be had (`fs.inotify.max_user_watches`) is counted, not
 * fatal: the periodic scan sees what no event tells.
 */
export class DirectoryWatch {
  readonly #watched = new Map<string, Watched>();
  readonly #failed = new Map<string, string>();

  /** Watches the entries of `dir`. Asked again for a directory that stands in the place of another, it watches the new one. */
  entries(dir: string, onEntry: OnEntry): void {
    const watched = this.#open(dir);
    if (watched !== undefined) watched.onDirectory = onEntry;
  }

  /** Watches one name in `dir`. Returns how to stop. */
  name(dir: string, name: string, onChange: () => void): () => void {
    const watched = this.#open(dir);
    if (watched === undefined) return () => {};
    const listeners = watched.onName.get(name) ?? new Set();
    watched.onName.set(name, listeners.add(onChange));
    return () => {
      listeners.delete(onChange);
      if (listeners.size === 0) watched.onName.delete(name);
      this.#closeIfIdle(dir, watched);
    };
  }

  /** Stops watching the entries of `dir`. */
  forget(dir: string): void {
    this.#failed.delete(dir);
    const watched = this.#watched.get(dir);
    if (watched === undefined) return;
    watched.onDirectory = undefined;
    this.#closeIfIdle(dir, watched);
  }

  close(): void {
    for (const watched of this.#watched.values()) watched.watcher.close();
    this.#watched.clear();
    this.#failed.clear();
  }

  get size(): number {
    return this.#watched.size;
  }

  /** Directories that could not be watched, with the reason. */
  get failed(): ReadonlyMap<string, string> {
    return this.#failed;
  }

  #open(dir: string): Watched | undefined {
    const present = this.#watched.get(dir);
    try {
      const { dev, ino } = statSync(dir);
      const id = `${dev}:${ino}`;
      if (present?.id === id && !present.isStale) return present;
      const watcher = watch(dir, { persistent: false }, (event, name) =>
        this.#tell(dir, name ?? undefined, event === "rename" && TELLS_WRITES ? "placed" : "any"),
      );
      present?.watcher.close(); // Only now: of a directory that is still the same nothing is missed.
      const watched: Watched = { id, watcher, onDirectory: present?.onDirectory, onName: present?.onName ?? new Map(), isStale: false };
      watcher.on("error", (error) => this.#drop(dir, watched, messageOf(error)));
      this.#watched.set(dir, watched);
      this.#failed.delete(dir);
      return watched;
    } catch (error) {
      if (present !== undefined) this.#drop(dir, present, messageOf(error));
      this.#failed.set(dir, messageOf(error));
      return undefined;
    }
  }

  #drop(dir: string, watched: Watched, reason: string): void {
    watched.watcher.close();
    if (this.#watched.get(dir) !== watched) return;
    this.#watched.delete(dir);
    this.#failed.set(dir, reason);
  }

  #tell(dir: string, name: string | undefined, change: EntryChange): void {
    const watched = this.#watched.get(dir);
    if (watched === undefined) return;
    // Of the directory itself its own name is told, as of an entry of that name.
    const isItself = name === basename(dir);
    watched.isStale ||= isItself;
    watched.onDirectory?.(name, change);
    if (isItself) watched.onDirectory?.(undefined, "any");
    const told = name === undefined || isItself ? [...watched.onName.values()] : [watched.onName.get(name) ?? new Set<() => void>()];
    for (const listeners of told) for (const listener of [...listeners]) listener();
  }

  #closeIfIdle(dir: string, watched: Watched): void {
    if (watched.onDirectory !== undefined || watched.onName.size > 0) return;
    watched.watcher.close();
    if (this.#watched.get(dir) === watched) this.#watched.delete(dir);
  }
}
