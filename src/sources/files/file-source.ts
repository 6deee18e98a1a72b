import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { createSlice } from "../../base/slice.ts";
import type { ConfigSource, RawObject, SourceEvent } from "../../config/object.ts";
import { ChangeQueue } from "./change-queue.ts";
import { FILE_LIMITS, FILE_TIMES, type FileLimits, type FileTimes } from "./file-limits.ts";
import { FileReader, type ReaderDeps } from "./file-reader.ts";
import { EmptyDirectoryError, FileTree, type Sighting } from "./file-tree.ts";
import { errorCode, systemReason } from "./system-error.ts";

export interface FileSourceDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: Partial<FileLimits>;
  readonly times?: Partial<FileTimes>;
  /** Documents that an earlier start has read. */
  readonly known?: ReaderDeps["known"];
}

/** How the source is doing, for `/ready?verbose` and `/debug`. */
export interface FileSourceHealth {
  /** `failing`: the directory cannot be read; what it said last stays in force. */
  readonly state: "starting" | "ok" | "failing";
  /** Why it fails, or what limits it. */
  readonly message?: string;
  /** Since when it is in that state, ms since the epoch. */
  readonly since: number;
  readonly files: number;
  /** Files that cannot be read as text at all. */
  readonly unreadableFiles: number;
  readonly directories: number;
  readonly watches: number;
  /** Directories without a watch: changes there are found by the periodic scan only. */
  readonly unwatchedDirectories: number;
  readonly lastScanAt: number | undefined;
  readonly lastChangeAt: number | undefined;
}

export interface FileSource extends ConfigSource {
  sourceHealth(): FileSourceHealth;
}

/**
 * Watches a directory of YAML and JSON. Yields one `reset`, then a `replace` per burst of changes, scope by scope (a scope is a file
 * path below the directory). Only documents whose text changed are parsed again; a periodic scan finds what no event told.
 *
 * A directory that cannot be read says nothing: what it said before stays. One that is absent at the start is empty until it appears;
 * one that is there and cannot be read yields nothing until it can, so that nobody takes a failure for an empty configuration.
 */
export function fileSource(dir: string, deps: FileSourceDeps): FileSource {
  return new DirectorySource(dir, deps);
}

/** Directories that cannot be watched are scanned this often instead. */
const UNWATCHED_RESCAN_MS = 2_000;
/** No two looks follow each other faster, whatever else is written into the directory. */
const LOOK_GAP_MS = 5;

/** A scope whose documents are read. */
interface ReadScope {
  readonly scope: string;
  readonly objects: readonly RawObject[];
}

class DirectorySource implements FileSource {
  readonly name: string;
  readonly #dir: string;
  readonly #deps: FileSourceDeps;
  readonly #times: FileTimes;
  #tree: FileTree;
  #reader: FileReader;
  #queue: ChangeQueue;
  #status: Pick<FileSourceHealth, "state" | "message" | "since">;
  #warnedOfWatches = false;
  #missing = false;
  /** When everything is looked at again, by the monotonic clock. */
  #scanDue = 0;
  #lastScan: number | undefined;
  #lastChange: number | undefined;

  constructor(dir: string, deps: FileSourceDeps) {
    this.name = `file:${dir}`;
    this.#dir = dir;
    this.#deps = deps;
    this.#times = { ...FILE_TIMES, ...deps.times };
    this.#status = { state: "starting", since: deps.clock.now() };
    [this.#queue, this.#tree, this.#reader] = this.#open();
  }

  async *events(signal: AbortSignal): AsyncGenerator<SourceEvent, void> {
    const { clock } = this.#deps;
    [this.#queue, this.#tree, this.#reader] = this.#open();
    try {
      yield* this.#tellAll(signal);
      let emitted = Number.NEGATIVE_INFINITY;
      while (!signal.aborted) {
        await this.#queue.next(this.#untilScan(), signal);
        if (clock.monotonic() - emitted < this.#times.maxWait) await this.#queue.settled(this.#times, signal);
        if (signal.aborted) return;
        if (yield* this.#tellChanges(signal)) emitted = clock.monotonic();
        else await clock.sleep(LOOK_GAP_MS, signal).catch(() => undefined);
      }
    } finally {
      this.#tree.close();
    }
  }

  // Generators of their own: `events` would hold what it told of last for as long as it waits for the next change, and the first is everything.

  async *#tellAll(signal: AbortSignal): AsyncGenerator<SourceEvent, void> {
    const first = await this.#first(signal);
    if (first !== undefined) yield { type: "reset", objects: first === "absent" ? [] : this.#objects(first, signal) };
  }

  /** All objects, each read when it is asked for: a directory may hold more than is good to have in hand at once. */
  async *#objects(sighting: Sighting, signal: AbortSignal): AsyncGenerator<RawObject, void> {
    for await (const { objects } of this.#reader.changes(sighting, signal)) {
      this.#lastChange = this.#deps.clock.now();
      yield* objects;
    }
  }

  /** Tells of what changed, and whether anything did. */
  async *#tellChanges(signal: AbortSignal): AsyncGenerator<SourceEvent, boolean> {
    const scopes = await this.#changes(signal);
    if (scopes.length > 0) yield { type: "replace", scopes };
    return scopes.length > 0;
  }

  rescan(): void {
    this.#queue.mark("");
  }

  sourceHealth(): FileSourceHealth {
    const { directories, watches, unwatched } = this.#tree.counts;
    return {
      ...this.#status,
      files: this.#reader.files,
      unreadableFiles: this.#reader.faulty,
      directories,
      watches,
      unwatchedDirectories: unwatched.length,
      lastScanAt: this.#lastScan,
      lastChangeAt: this.#lastChange,
    };
  }

  #open(): [ChangeQueue, FileTree, FileReader] {
    const { clock } = this.#deps;
    const limits = { ...FILE_LIMITS, ...this.#deps.limits };
    const queue = new ChangeQueue(clock);
    const tree = new FileTree(this.#dir, { limits, queue });
    const deps = { clock, limits, times: this.#times, queue, tree, source: this.name };
    return [queue, tree, new FileReader(this.#dir, { ...deps, ...(this.#deps.known !== undefined && { known: this.#deps.known }) })];
  }

  /** What there is at the start; undefined when the signal aborted before it could be seen. */
  async #first(signal: AbortSignal): Promise<Sighting | "absent" | undefined> {
    while (!signal.aborted) {
      this.#queue.mark("");
      try {
        const sighting = await this.#look(this.#queue.take());
        if (!signal.aborted) return sighting;
      } catch (error) {
        if (!signal.aborted) this.#failed(error);
      }
      if (this.#missing && !signal.aborted) return "absent";
      await this.#deps.clock.sleep(this.#times.retry, signal).catch(() => undefined);
    }
    return undefined;
  }

  /** What is new of what is due, in order of scope. A failure of the directory is noted and brings no change. */
  async #changes(signal: AbortSignal): Promise<ReadScope[]> {
    const paths = this.#queue.take();
    if (this.#untilScan() <= 0) paths.set("", "any");
    if (paths.size === 0) return [];
    const scopes: ReadScope[] = [];
    const slice = createSlice(this.#deps.clock);
    try {
      for await (const { scope, objects } of this.#reader.changes(await this.#look(paths), signal)) {
        const read: RawObject[] = [];
        for (const object of objects) {
          read.push(object);
          const rest = slice();
          if (rest !== undefined) await rest;
        }
        scopes.push({ scope, objects: read });
      }
    } catch (error) {
      if (!signal.aborted) this.#failed(error);
      return [];
    }
    if (scopes.length > 0) this.#lastChange = this.#deps.clock.now();
    return scopes.sort((a, b) => (a.scope < b.scope ? -1 : 1));
  }

  async #look(paths: Sighting["named"]): Promise<Sighting> {
    const sighting = await this.#tree.look(paths);
    if (paths.has("")) this.#scanned(this.#times.rescan);
    for (const path of sighting.found.cycles) this.#deps.log.debug({ path }, "left out a link to a directory it lies in");
    this.#recovered();
    return sighting;
  }

  #untilScan(): number {
    return this.#scanDue - this.#deps.clock.monotonic();
  }

  #scanned(nextIn: number): void {
    const { clock } = this.#deps;
    const period = this.#tree.counts.unwatched.length > 0 ? Math.min(nextIn, UNWATCHED_RESCAN_MS) : nextIn;
    this.#scanDue = clock.monotonic() + period;
    this.#lastScan = clock.now();
  }

  #recovered(): void {
    const { clock, log } = this.#deps;
    this.#missing = false;
    const { unwatched } = this.#tree.counts;
    if (unwatched.length > 0 && !this.#warnedOfWatches) {
      this.#warnedOfWatches = true;
      log.warn(
        { dir: this.#dir, directories: unwatched.length, reason: unwatched[0] },
        `directories cannot be watched and are scanned instead${/ENOSPC/.test(unwatched[0] ?? "") ? ": raise fs.inotify.max_user_watches" : ""}`,
      );
    }
    if (this.#status.state === "ok" && this.#status.message === undefined) return;
    if (this.#status.state === "failing") log.info({ dir: this.#dir }, "configuration directory can be read again");
    this.#status = { state: "ok", since: clock.now() };
  }

  #failed(error: unknown): void {
    const { clock, log } = this.#deps;
    this.#missing = errorCode(error) === "ENOENT" && this.#reader.files === 0;
    this.#scanned(this.#times.retry);
    const message = this.#missing
      ? `the configuration directory ${this.#dir} does not exist yet; it is read as soon as it does`
      : `the configuration directory ${this.#dir} cannot be read: ${error instanceof EmptyDirectoryError ? error.message : systemReason(error)}`;
    if (this.#status.message === message) return;
    this.#status = { state: this.#missing ? "ok" : "failing", message, since: clock.now() };
    if (this.#missing) log.info(message);
    else log.warn({ files: this.#reader.files }, message);
  }
}
