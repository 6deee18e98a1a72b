import { type FSWatcher, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Env } from "../../settings/read-settings.ts";
import { loadMesh, type MeshLoad } from "./load-mesh.ts";
import type { MeshText } from "./mesh-files.ts";

/** Files must be found unchanged for this long before they are believed. */
const QUIET_MS = 50;
/** A file that never comes to rest is read all the same after a second. */
const MOST_WAITS = 20;
/** The disk is looked at this often even if nothing was heard: watches get lost on network file systems and under pressure. */
const RESCAN_MS = 10_000;

export interface MeshWatchOptions {
  readonly baseDir: string;
  readonly env: Env;
  readonly clock: Clock;
  /** The load the caller already has: what is yielded differs from it. */
  readonly since: MeshLoad;
  /** What a cluster says now; whoever changes it calls `rescan`. */
  readonly cluster?: () => MeshText | undefined;
}

export interface MeshWatch {
  /** Every load whose files differ from those of the one before, until `signal` aborts. A bad one is yielded too: the caller keeps the last good. */
  loads(signal: AbortSignal): AsyncIterable<MeshLoad>;
  /** Looks at the disk now, as SIGHUP asks. */
  rescan(): void;
}

/**
 * Follows the files of a mesh. Directories are watched rather than files, so that files that appear, are renamed into place or are
 * reached through a link that is swapped (a mounted ConfigMap) are seen. What counts is content: a touch yields nothing.
 */
export function watchMesh(options: MeshWatchOptions): MeshWatch {
  const bell = new Bell();
  return {
    rescan: () => bell.ring(),
    async *loads(signal) {
      const directories = new WatchedDirectories(() => bell.ring());
      let last = options.since;
      signal.addEventListener("abort", () => bell.ring(), { once: true });
      try {
        while (!signal.aborted) {
          await directories.watch(await directoriesOf(last.files, options.baseDir));
          const next = await settledLoad(options, last, signal);
          if (signal.aborted) return;
          if (next.hash !== last.hash) {
            last = next;
            yield next;
            continue;
          }
          await bell.rung(options.clock, RESCAN_MS);
          await pause(options.clock, signal);
        }
      } finally {
        directories.close();
      }
    },
  };
}

/**
 * Reads until two readings in a row are the same: an editor that empties a file and then fills it, or a tool that writes several files,
 * is not caught half way.
 */
async function settledLoad({ baseDir, env, clock, cluster }: MeshWatchOptions, last: MeshLoad, signal: AbortSignal): Promise<MeshLoad> {
  let load = await loadMesh(baseDir, env, cluster?.());
  for (let waits = 0; waits < MOST_WAITS && load.hash !== last.hash && !signal.aborted; waits++) {
    await pause(clock, signal);
    const again = await loadMesh(baseDir, env, cluster?.());
    if (again.hash === load.hash) break;
    load = again;
  }
  return load;
}

/** Also keeps a busy directory from making us read all the time. */
const pause = (clock: Clock, signal: AbortSignal): Promise<void> => clock.sleep(QUIET_MS, signal).catch(() => {});

/** Where to listen for changes of these files: the directory that names each, the one its link leads to, or the nearest one that exists. */
async function directoriesOf(files: readonly string[], baseDir: string): Promise<ReadonlySet<string>> {
  const wanted = new Set<string>();
  for (const file of files) {
    wanted.add(await nearestDirectory(dirname(file), baseDir));
    const real = await realpath(file).catch(() => undefined);
    if (real !== undefined) wanted.add(dirname(real));
  }
  return wanted;
}

async function nearestDirectory(path: string, baseDir: string): Promise<string> {
  let at = path;
  while (at !== baseDir && at !== dirname(at) && !(await isDirectory(at))) at = dirname(at);
  return at;
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

/** A set of watched directories. One that was deleted and made again is watched anew, since the old watch died with it. */
class WatchedDirectories {
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Watches exactly these directories. */
  async watch(directories: ReadonlySet<string>): Promise<void> {
    const wanted = new Map<string, string>();
    for (const path of directories) {
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined) wanted.set(`${found.dev}:${found.ino}:${path}`, path);
    }
    for (const [id, watcher] of this.#watchers) {
      if (wanted.has(id)) continue;
      watcher.close();
      this.#watchers.delete(id);
    }
    for (const [id, path] of wanted) if (!this.#watchers.has(id)) this.#start(id, path);
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #start(id: string, path: string): void {
    try {
      const watcher = watch(path, { persistent: false }, (_, name) => {
        // Told of the directory itself: it may be gone, and another in its place with the same inode.
        if (name === basename(path) && this.#watchers.get(id) === watcher) {
          watcher.close();
          this.#watchers.delete(id);
        }
        this.#changed();
      });
      watcher.on("error", () => {
        watcher.close();
        this.#watchers.delete(id);
        this.#changed();
      });
      this.#watchers.set(id, watcher);
    } catch {
      // Gone again, or no watches left: the slow look at the disk finds what changes there.
    }
  }
}

/** Wakes one waiter; a ring that nobody waited for is remembered. */
class Bell {
  #rang = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rang = true;
    this.#wake?.();
  }

  /** Resolves at a ring that was not waited for before, or after `ms`. */
  async rung(clock: Clock, ms: number): Promise<void> {
    if (!this.#rang) {
      await new Promise<void>((resolve) => {
        const cancel = clock.after(ms, resolve);
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
      this.#wake = undefined;
    }
    this.#rang = false;
  }
}
