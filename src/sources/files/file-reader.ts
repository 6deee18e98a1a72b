import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { nextTurn } from "../../base/slice.ts";
import {
  countDocuments,
  type DocumentShapes,
  nothingSeen,
  readDocuments,
  type SeenDocuments,
  type TextOrigin,
  unreadableText,
} from "../../config/documents/read-documents.ts";
import type { RawObject } from "../../config/object.ts";
import { eachBounded, IO_WIDTH } from "./bounded.ts";
import type { ChangeQueue } from "./change-queue.ts";
import type { FileLimits, FileTimes } from "./file-limits.ts";
import { namespaceOfPath } from "./file-names.ts";
import { fileStats } from "./file-stats.ts";
import type { FileTree, Sighting } from "./file-tree.ts";
import { Patience } from "./patience.ts";
import { type FileReading, readConfigFile, takeText } from "./read-config-file.ts";
import type { FoundFile } from "./scan-tree.ts";

/** The new content of one file (or of a directory's fault, whose scope ends with `/`). */
export interface ScopeChange {
  readonly scope: string;
  /** Each is parsed when it is asked for. To be asked for once, all of them, before the next scope. */
  readonly objects: Iterable<RawObject>;
}

export interface ReaderDeps {
  readonly clock: Clock;
  readonly limits: FileLimits;
  readonly times: FileTimes;
  readonly queue: ChangeQueue;
  readonly tree: FileTree;
  /** Name of the source, for origins. */
  readonly source: string;
  /** Documents that are known from before the start. */
  readonly known?: Pick<DocumentShapes, "get">;
}

interface FileRecord {
  /** Undefined: the file was read so soon after it was written that a later write may look the same. */
  readonly ident: string | undefined;
  readonly inode: string;
  /** Hash of the content, or the fault. */
  readonly hash: string;
  readonly seen: SeenDocuments;
  readonly faulty: boolean;
}

type Reading = FileReading & { readonly path: string; readonly file: FoundFile | undefined };

/** So many files are read before the documents in them are parsed: what is in all of them need not be held at once. */
const FILES_AT_ONCE = 32;

/** Written less than this long ago is just now: the tick of the file system's clock plus what two clocks may differ. */
const JUST_NOW_MS = 20;

/**
 * Waits until the events of what happened before now have been told. A file that was written in its place has then been marked as
 * more than placed; one that has not was moved there, and is whole. Two turns: the first may have asked for events before now.
 */
async function eventsTold(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/** Reads what a look at the tree found changed, and tells which scopes say something new. Remembers what each file said. */
export class FileReader {
  readonly #root: string;
  readonly #deps: ReaderDeps;
  readonly #records = new Map<string, FileRecord>();
  readonly #patience: Patience;

  constructor(root: string, deps: ReaderDeps) {
    this.#root = root;
    this.#deps = deps;
    this.#patience = new Patience(deps.clock);
  }

  get files(): number {
    return this.#records.size;
  }

  get faulty(): number {
    let count = 0;
    for (const record of this.#records.values()) if (record.faulty) count += 1;
    return count;
  }

  /** The scopes that changed, files in order of path, read as they are asked for. What may still be being written is left for later. Throws when the signal aborts. */
  async *changes(sighting: Sighting, signal: AbortSignal): AsyncGenerator<ScopeChange, void> {
    for (const scope of sighting.healed) yield { scope, objects: [] };
    for (const path of sighting.gone) if (this.#removed(path)) yield { scope: path, objects: [] };
    const unread: Reading[] = [];
    for (const [path, fault] of sighting.found.faults) {
      if (path.endsWith("/")) yield { scope: path, objects: [unreadableText(this.#origin(path), fault)] };
      else unread.push({ path, file: undefined, type: "fault", fault, stats: undefined });
    }
    yield* this.#changed(unread);
    const files = this.#toRead(sighting);
    for (let at = 0; at < files.length; at += FILES_AT_ONCE) {
      signal.throwIfAborted();
      yield* this.#changed(await this.#settled(await this.#read(files.slice(at, at + FILES_AT_ONCE)), sighting, signal));
    }
  }

  /** Files that may say something new, in order of path. */
  #toRead({ found, named }: Sighting): readonly (readonly [string, FoundFile])[] {
    const wanted = [...found.files].filter(([path, file]) => {
      if (!named.has(path) && this.#records.get(path)?.ident === file.stats.ident) this.#patience.forget(path);
      else return true;
      return false;
    });
    return wanted.sort(([a], [b]) => (a < b ? -1 : 1));
  }

  async #read(files: readonly (readonly [string, FoundFile])[]): Promise<Reading[]> {
    const readings: Reading[] = [];
    await eachBounded(files, IO_WIDTH, async ([path, file]) => {
      if (file.link) await this.#deps.tree.follow(path);
      readings.push({ ...(await readConfigFile(join(this.#root, path), this.#deps.limits)), path, file });
    });
    return readings.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  *#changed(readings: Reading[]): Iterable<ScopeChange> {
    for (const reading of readings) {
      const objects = this.#objects(reading);
      if (objects !== undefined) yield { scope: reading.path, objects };
    }
  }

  /** Leaves out files that changed while they were read: those written just now are looked at a second time, all after one pause. */
  async #settled(readings: readonly Reading[], { named }: Sighting, signal: AbortSignal): Promise<Reading[]> {
    const { clock, queue, times } = this.#deps;
    const now = clock.now();
    const recent = readings.filter((one) => one.type === "text" && now - one.stats.mtimeMs < JUST_NOW_MS && !this.#swapped(one));
    const placed = new Set(recent.filter((one) => named.get(one.path) === "placed" && one.file?.link === false));
    if (placed.size > 0) await eventsTold();
    const fresh = recent.filter((one) => !placed.has(one) || queue.marked(one.path) === "any");
    if (fresh.length === 0) return [...readings];
    await clock.sleep(times.settle, signal);
    const moving = new Set<Reading>();
    await eachBounded(fresh, IO_WIDTH, async (one) => {
      const again = await stat(join(this.#root, one.path)).catch(() => undefined);
      if (one.type !== "text" || (again !== undefined && fileStats(again).ident === one.stats.ident)) return;
      moving.add(one);
      queue.markLater(one.path, times.settle);
    });
    return readings.filter((one) => !moving.has(one));
  }

  /** A link that leads to another file than before was swapped as a whole: what it leads to is complete. */
  #swapped(reading: Reading): boolean {
    const before = this.#records.get(reading.path);
    return reading.type === "text" && reading.file?.link === true && before !== undefined && before.inode !== reading.stats.inode;
  }

  /** What the file says now; undefined when that is nothing new, or not to be believed yet. */
  #objects(reading: Reading): Iterable<RawObject> | undefined {
    const { path } = reading;
    const before = this.#records.get(path);
    if (reading.type === "gone") {
      this.#deps.queue.markLater(path, this.#deps.times.missing);
      return undefined;
    }
    const hash = reading.type === "text" ? reading.hash : `fault: ${reading.fault}`;
    if (hash !== before?.hash && reading.type === "text" && this.#mustWait(reading, before)) return undefined;
    this.#patience.forget(path);
    this.#deps.tree.keep(path);
    const record = recordOf(reading, before, { hash, now: this.#deps.clock.now() });
    if (hash === before?.hash) {
      this.#records.set(path, record);
      return undefined;
    }
    if (reading.type === "fault") {
      this.#records.set(path, record);
      return [unreadableText(this.#origin(path), reading.fault)];
    }
    const seen = nothingSeen();
    this.#records.set(path, { ...record, seen });
    const known = before?.seen.shapes ?? this.#deps.known;
    // Texts that documents of earlier ones stay in force beside are not kept for the few that are new.
    const sharesText = before === undefined;
    return readDocuments(takeText(reading), this.#origin(path), { seen, sharesText, ...(known !== undefined && { known }) });
  }

  /** Fewer documents than before: perhaps the rest has not been written yet. */
  #mustWait(reading: Reading & { type: "text" }, before: FileRecord | undefined): boolean {
    const { queue, times } = this.#deps;
    if (before === undefined || before.seen.documents === 0 || this.#swapped(reading)) return false;
    const documents = countDocuments(reading.bytes.toString());
    if (documents >= before.seen.documents) return false;
    const left = this.#patience.left(reading.path, reading.stats.ident, documents === 0 ? times.empty : times.fewer);
    if (left > 0) queue.markLater(reading.path, left);
    return left > 0;
  }

  #removed(path: string): boolean {
    const left = this.#patience.left(path, "gone", this.#deps.times.missing);
    if (left > 0) {
      this.#deps.queue.markLater(path, left);
      return false;
    }
    this.#records.delete(path);
    this.#deps.tree.forget(path);
    return true;
  }

  #origin(scope: string): TextOrigin {
    const namespace = namespaceOfPath(scope);
    return {
      source: this.#deps.source,
      file: join(this.#root, scope),
      scope,
      ...(namespace !== undefined && { defaultNamespace: namespace }),
    };
  }
}

function recordOf(
  reading: Reading & { type: "text" | "fault" },
  before: FileRecord | undefined,
  at: { hash: string; now: number },
): FileRecord {
  const racy = reading.stats === undefined || at.now - reading.stats.mtimeMs < JUST_NOW_MS;
  return {
    ident: racy ? undefined : reading.stats?.ident,
    inode: reading.stats?.inode ?? before?.inode ?? "",
    hash: at.hash,
    seen: before?.seen ?? nothingSeen(),
    faulty: reading.type === "fault",
  };
}
