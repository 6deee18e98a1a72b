import { mkdir, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import { contentHash } from "../../base/hash.ts";
import type { Log } from "../../base/log.ts";
import { writeWholeFile } from "../../base/whole-file.ts";
import { type DeltaResource, readDeltaResource } from "../../wire/delta-frames.ts";
import { bytesField, openField, textField } from "../../wire/field-writer.ts";
import { SECRET_TYPE, shortTypeName } from "../../wire/type-urls.ts";

export interface LastGoodOptions {
  readonly directory: string;
  /** Whose configuration it is: that of another node is of no use. */
  readonly nodeId: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Most bytes kept of one type. */
  readonly mostBytes?: number;
}

/** What Envoy has accepted, kept so that it can be had again without a control plane. */
export interface LastGood {
  /** Envoy accepted these, and that those are gone. */
  note(typeUrl: string, changed: readonly DeltaResource[], removed: readonly string[]): void;
  /** All resources of a type. */
  read(typeUrl: string): Promise<ReadonlyMap<string, DeltaResource>>;
  /** Whether anything was noted of a type, were it that there is nothing of it. */
  knows(typeUrl: string): Promise<boolean>;
  /** Resolves when everything noted is on disk. */
  flush(): Promise<void>;
}

const MOST_BYTES = 64 * 1024 * 1024;
const COALESCE_MS = 250;
/** A disk that is full is tried again after so long, or with the next change. */
const RETRY_MS = 30_000;
const RESOURCE_FIELD = 2;
const REMOVED_FIELD = 6;
/** Says that an answer brought nothing: the removal of what cannot be. */
const NOTHING = bytesField(REMOVED_FIELD, Buffer.alloc(0));

/**
 * Keeps one file a type. A file is a `DeltaDiscoveryResponse` at all times, with one field at least where there was an answer: what changes is appended, and what comes later in it counts, so a
 * change costs what it is long, memory holds nothing but sizes, and a tail that was cut off by a crash is a change that did not happen. A
 * file that is more than half old is written anew beside and put in its place. What cannot be written is owed: it stays in memory, the latest of each resource, until
 * it can be. Secrets stay in memory: private keys are not put on disk.
 */
export function openLastGood(options: LastGoodOptions): LastGood {
  const secrets = new Map<string, DeltaResource>();
  const files = new Map<string, TypeFile>();
  const prefix = contentHash(options.nodeId).slice(0, 8);
  void forgetOthers(options.directory, prefix);
  const fileOf = (typeUrl: string): TypeFile => {
    const file = files.get(typeUrl) ?? new TypeFile(join(options.directory, `${prefix}.${shortTypeName(typeUrl)}.pb`), options);
    files.set(typeUrl, file);
    return file;
  };
  return {
    note(typeUrl, changed, removed) {
      if (typeUrl !== SECRET_TYPE) return fileOf(typeUrl).append(changed, removed);
      for (const resource of changed) secrets.set(resource.name, { ...resource, bytes: Buffer.from(resource.bytes) });
      for (const name of removed) secrets.delete(name);
    },
    read: async (typeUrl) => (typeUrl === SECRET_TYPE ? secrets : (await fileOf(typeUrl).read()).resources),
    knows: async (typeUrl) => (typeUrl === SECRET_TYPE ? secrets.size > 0 : (await fileOf(typeUrl).read()).end > 0),
    async flush() {
      await Promise.all([...files.values()].map((file) => file.flush()));
    },
  };
}

/** Files of a node that this machine was before. */
async function forgetOthers(directory: string, prefix: string): Promise<void> {
  for (const name of await readdir(directory).catch(() => []))
    if (/^[\w-]{8}\.[\w.]+\.pb$/.test(name) && !name.startsWith(`${prefix}.`)) await rm(join(directory, name), { force: true });
}

class TypeFile {
  readonly #path: string;
  readonly #options: LastGoodOptions;
  /** Bytes of each resource that is in force; undefined before the file was read. */
  #live: Map<string, number> | undefined;
  #size = 0;
  #pending: Uint8Array[] = [];
  /** What could not be written. */
  #owed: Buffer = Buffer.alloc(0);
  #queue: Promise<void> = Promise.resolve();
  #timer: (() => void) | undefined;
  #faulty = false;
  /** Something was noted by this process. */
  #noted = false;

  constructor(path: string, options: LastGoodOptions) {
    this.#path = path;
    this.#options = options;
  }

  append(changed: readonly DeltaResource[], removed: readonly string[]): void {
    for (const { bytes } of changed) this.#pending.push(openField(RESOURCE_FIELD, bytes.length), bytes);
    for (const name of removed) this.#pending.push(textField(REMOVED_FIELD, name));
    if (!this.#noted && this.#pending.length === 0) this.#pending.push(NOTHING);
    this.#noted = true;
    if (this.#pending.length > 0) this.#timer ??= this.#options.clock.after(COALESCE_MS, () => void this.flush());
  }

  async read(): Promise<Walked> {
    await this.flush();
    const content = await readFile(this.#path).catch(() => Buffer.alloc(0));
    return this.#owed.length === 0 ? walk(content) : walk(Buffer.concat([content.subarray(0, walk(content).end), this.#owed]));
  }

  flush(): Promise<void> {
    this.#timer?.();
    this.#timer = undefined;
    this.#queue = this.#queue.then(async () => {
      const added = Buffer.concat([this.#owed, ...this.#pending]);
      this.#pending = [];
      if (added.length === 0) return;
      try {
        await this.#write(added);
        this.#faulty = false;
        this.#owed = Buffer.alloc(0);
      } catch (error) {
        if (!this.#faulty)
          this.#options.log.error({ file: this.#path, reason: messageOf(error) }, "the last good configuration cannot be kept on disk");
        this.#faulty = true;
        this.#live = undefined;
        this.#owe(added);
      }
    });
    return this.#queue;
  }

  #owe(added: Buffer): void {
    const { resources, removed } = walk(added);
    const owed = contentOf(resources.values(), removed);
    // More than is ever kept is not held either.
    this.#owed = owed.length > (this.#options.mostBytes ?? MOST_BYTES) ? Buffer.alloc(0) : owed;
    if (this.#owed.length > 0) this.#timer ??= this.#options.clock.after(RETRY_MS, () => void this.flush());
  }

  async #write(added: Buffer): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true, mode: 0o700 });
    this.#live ??= await this.#load();
    const change = walk(added);
    for (const name of change.removed) this.#live.delete(name);
    for (const [name, { bytes }] of change.resources) this.#live.set(name, bytes.length);
    const live = [...this.#live.values()].reduce((sum, bytes) => sum + bytes + 8, 0);
    if (live > (this.#options.mostBytes ?? MOST_BYTES)) throw new Error(`it has ${live} bytes, more than are kept`);
    await appendTo(this.#path, added);
    this.#size += added.length;
    if (this.#size > 2 * live + 64 * 1024) await this.#compact();
  }

  async #load(): Promise<Map<string, number>> {
    const content = await readFile(this.#path).catch(() => Buffer.alloc(0));
    const { resources, end } = walk(content);
    this.#size = end;
    if (end < content.length) await writeWholeFile(this.#path, content.subarray(0, end));
    return new Map([...resources].map(([name, { bytes }]) => [name, bytes.length]));
  }

  async #compact(): Promise<void> {
    const { resources } = walk(await readFile(this.#path));
    const content = resources.size === 0 ? Buffer.from(NOTHING) : contentOf(resources.values(), []);
    await writeWholeFile(this.#path, content);
    this.#size = content.length;
  }
}

const contentOf = (resources: Iterable<DeltaResource>, removed: readonly string[]): Buffer =>
  Buffer.concat([
    ...[...resources].flatMap(({ bytes }) => [openField(RESOURCE_FIELD, bytes.length), bytes]),
    ...removed.map((name) => bytesField(REMOVED_FIELD, Buffer.from(name, "utf8"))),
  ]);

interface Walked {
  readonly resources: Map<string, DeltaResource>;
  readonly removed: readonly string[];
  /** Where the last whole field ends. */
  readonly end: number;
}

function walk(content: Uint8Array): Walked {
  const resources = new Map<string, DeltaResource>();
  const removed = new Set<string>();
  const reader = new BinaryReader(content);
  let end = 0;
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === RESOURCE_FIELD) {
        const resource = readDeltaResource(reader.bytes());
        resources.set(resource.name, resource);
        removed.delete(resource.name);
      } else if (field === REMOVED_FIELD) {
        const name = reader.string();
        resources.delete(name);
        removed.add(name);
      } else reader.skip(wireType, field);
      if (reader.pos > reader.len) break;
      end = reader.pos;
    }
  } catch {
    // The tail was not written to its end: what stands before it counts.
  }
  return { resources, removed: [...removed], end };
}

async function appendTo(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, "a", 0o600);
  try {
    await writeFile(file, bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}
