import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { createSlice } from "../../base/slice.ts";
import {
  countDocuments,
  type DocumentShape,
  type DocumentShapes,
  readDocuments,
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
import { type FileReading, readConfigFile } from "./read-config-file.ts";
import type { FoundFile } from "./scan-tree.ts";

/** The new content of one file (or of a directory's fault, whose scope ends with `/`). */
export interface ScopeChange {
  readonly scope: string;
  readonly objects: readonly RawObject[];
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
  readonly documents: number;
  readonly shapes: ReadonlyMap<string, DocumentShape>;
  readonly faulty: boolean;
}

type Reading = FileReading & { readonly path: string; readonly file: FoundFile | undefined };

/** Written less than this long ago is just now: the tick of the file system's clock plus what two clocks may differ. */
const JUST_NOW_MS = 20;

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

  /** The scopes that changed, in order of path. What may still be being written is left for later. */
  async changes(sighting: Sighting, signal: AbortSignal): Promise<ScopeChange[]> {
    const changes: ScopeChange[] = [...sighting.healed].map((scope) => ({ scope, objects: [] }));
    for (const path of sighting.gone) if (this.#removed(path)) changes.push({ scope: path, objects: [] });
    for (const [scope, fault] of sighting.found.faults) {
      if (scope.endsWith("/")) changes.push({ scope, objects: [unreadableText(this.#origin(scope), fault)] });
    }
    const slice = createSlice(this.#deps.clock);
    for (const reading of await this.#settled(await this.#read(sighting), signal)) {
      const rest = slice();
      if (rest !== undefined) await rest;
      const objects = await this.#objects(reading, slice);
      if (objects !== undefined) changes.push({ scope: reading.path, objects });
    }
    return changes.sort((a, b) => (a.scope < b.scope ? -1 : 1));
  }

  async #read({ found, named }: Sighting): Promise<Reading[]> {
    const readings: Reading[] = [];
    for (const [path, fault] of found.faults) {
      if (!path.endsWith("/")) readings.push({ path, file: undefined, type: "fault", fault, stats: undefined });
    }
    const wanted = [...found.files].filter(([path, file]) => {
      if (!named.has(path) && this.#records.get(path)?.ident === file.stats.ident) this.#patience.forget(path);
      else return true;
      return false;
    });
    await eachBounded(wanted, IO_WIDTH, async ([path, file]) => {
      if (file.link) await this.#deps.tree.follow(path);
      readings.push({ ...(await readConfigFile(join(this.#root, path), this.#deps.limits)), path, file });
    });
    return readings;
  }

  /** Leaves out files that changed while they were read: those written just now are looked at a second time, all after one pause. */
  async #settled(readings: readonly Reading[], signal: AbortSignal): Promise<Reading[]> {
    const { clock, queue, times } = this.#deps;
    const now = clock.now();
    const fresh = readings.filter((one) => one.type === "text" && now - one.stats.mtimeMs < JUST_NOW_MS && !this.#swapped(one));
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
  async #objects(reading: Reading, slice: () => Promise<void> | undefined): Promise<RawObject[] | undefined> {
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
    const objects: RawObject[] = [];
    const seen = { shapes: new Map<string, DocumentShape>(), documents: 0 };
    const known = before?.shapes ?? this.#deps.known;
    for (const object of readDocuments(reading.text, this.#origin(path), { seen, ...(known !== undefined && { known }) })) {
      objects.push(object);
      const rest = slice();
      if (rest !== undefined) await rest;
    }
    this.#records.set(path, { ...record, ...seen });
    return objects;
  }

  /** Fewer documents than before: perhaps the rest has not been written yet. */
  #mustWait(reading: Reading & { type: "text" }, before: FileRecord | undefined): boolean {
    const { queue, times } = this.#deps;
    if (before === undefined || before.documents === 0 || this.#swapped(reading)) return false;
    const documents = countDocuments(reading.text);
    if (documents >= before.documents) return false;
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
    documents: before?.documents ?? 0,
    shapes: before?.shapes ?? new Map(),
    faulty: reading.type === "fault",
  };
}
