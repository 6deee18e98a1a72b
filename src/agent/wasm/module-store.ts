import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { writeWholeFile } from "../../base/whole-file.ts";
import { sha256Of } from "./fetch-image.ts";
import type { FoundModule } from "./fetch-module.ts";
import type { RemoteModule } from "./remote-module.ts";

/** What is known of a URL: the file its module is in, and for whom it was fetched. Plain JSON: it is kept on disk in this form. */
interface Entry {
  /** Digests by which the module may be named. */
  readonly digests: readonly string[];
  readonly file: string;
  /** Resource to the version of it for which the URL was asked last. */
  readonly versions: Readonly<Record<string, string>>;
  readonly usedAt: number;
}

export interface ModuleStoreOptions {
  readonly directory: string;
  readonly expiryMs: number;
  readonly clock: Clock;
  find(module: RemoteModule, signal: AbortSignal): Promise<FoundModule>;
  /** Told what became of each look-up and fetch. */
  note(event: "hit" | "miss" | "success" | "failure" | "checksum"): void;
}

/** Modules on disk. */
export interface ModuleStore {
  /** The file with a module, fetched where that is needed. Rejects with a sentence. */
  file(resource: string, module: RemoteModule): Promise<string>;
  /** A resource is gone, and with it the use of its module. */
  forget(resource: string): void;
  /** Removes what nobody has used for long. */
  purge(): Promise<void>;
  readonly size: number;
}

const INDEX = "modules.json";
const TIMEOUT_MS = 30_000;

/** Opens the store, with what it kept before. */
export async function openModuleStore(options: ModuleStoreOptions): Promise<ModuleStore> {
  await mkdir(options.directory, { recursive: true, mode: 0o700 });
  return new DiskModules(options, await readIndex(options.directory));
}

/**
 * Keeps modules by their content, for the owner's eyes only, and remembers what each URL stood for, also over a restart. A module that is named by
 * digest is fetched once; others again when the pull policy says so: `Always`, and `latest` images, whenever their resource changes.
 */
class DiskModules implements ModuleStore {
  readonly #options: ModuleStoreOptions;
  readonly #entries: Map<string, Entry>;
  /** Resource to the file it uses. */
  readonly #used = new Map<string, string>();
  readonly #underWay = new Map<string, Promise<string>>();
  #writing: Promise<void> = Promise.resolve();

  constructor(options: ModuleStoreOptions, entries: Readonly<Record<string, Entry>>) {
    this.#options = options;
    this.#entries = new Map(Object.entries(entries));
  }

  get size(): number {
    return this.#entries.size;
  }

  async file(resource: string, module: RemoteModule): Promise<string> {
    // Two resources may name one module, and a resource may come again before it is there.
    const id = JSON.stringify([module.url, module.sha256, module.resourceVersion]);
    const running = this.#underWay.get(id) ?? this.#get(resource, module).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, running);
    const file = await running;
    this.#used.set(resource, file);
    return this.#path(file);
  }

  forget(resource: string): void {
    this.#used.delete(resource);
  }

  async purge(): Promise<void> {
    const { clock, expiryMs, directory } = this.#options;
    const inUse = new Set(this.#used.values());
    const old = clock.now() - expiryMs;
    for (const [url, { file, usedAt }] of this.#entries) if (usedAt < old && !inUse.has(file)) this.#entries.delete(url);
    const kept = new Set([INDEX, ...inUse, ...[...this.#entries.values()].map(({ file }) => file)]);
    await this.#writeIndex();
    for (const file of await readdir(directory)) if (!kept.has(file)) await rm(this.#path(file), { force: true });
  }

  async #get(resource: string, module: RemoteModule): Promise<string> {
    const known = this.#entries.get(module.url);
    const present = known !== undefined && (await isThere(this.#path(known.file)));
    const use = { versions: { ...known?.versions, [resource]: module.resourceVersion }, usedAt: this.#options.clock.now() };
    const isHit = present && isCurrent(resource, module, known);
    this.#options.note(isHit ? "hit" : "miss");
    if (isHit) return this.#keep(module.url, { ...known, ...use });
    const found = await this.#find(module);
    const same = present && known.digests.some((digest) => found.digests.includes(digest));
    if (same) return this.#keep(module.url, { ...known, ...use });
    const bytes = await found.bytes().catch(this.#failed);
    const file = `${sha256Of(bytes)}.wasm`;
    await this.#write(file, bytes);
    this.#options.note("success");
    return this.#keep(module.url, { digests: found.digests, file, ...use });
  }

  async #find(module: RemoteModule): Promise<FoundModule> {
    const { find, note } = this.#options;
    const found = await find(module, AbortSignal.timeout(module.timeoutMs ?? TIMEOUT_MS)).catch(this.#failed);
    if (module.sha256 === "" || found.digests.includes(module.sha256)) return found;
    note("checksum");
    throw new Error(`it has the digest ${found.digests[0]}, and ${module.sha256} is wanted`);
  }

  readonly #failed = (error: unknown): never => {
    this.#options.note("failure");
    throw error;
  };

  async #keep(url: string, entry: Entry): Promise<string> {
    this.#entries.set(url, entry);
    await this.#writeIndex();
    return entry.file;
  }

  #writeIndex(): Promise<void> {
    return this.#write(INDEX, JSON.stringify(Object.fromEntries(this.#entries)));
  }

  /** One at a time: two may write the same file. */
  #write(file: string, content: string | Buffer): Promise<void> {
    const done = this.#writing.then(() => writeWholeFile(this.#path(file), content));
    this.#writing = done.catch(() => {});
    return done;
  }

  #path(file: string): string {
    return join(this.#options.directory, file);
  }
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Whether what is on disk will do, without a question to whoever has it. */
function isCurrent(resource: string, { url, sha256, pullPolicy, resourceVersion }: RemoteModule, known: Entry): boolean {
  const named = sha256 || /@sha256:([0-9a-f]{64})$/.exec(url)?.[1];
  if (named !== undefined) return known.digests.includes(named);
  const isLatest = url.startsWith("oci://") && (url.endsWith(":latest") || !/:[^/]*$/.test(url.slice("oci://".length)));
  if (pullPolicy === "IfNotPresent" || (pullPolicy === undefined && !isLatest)) return true;
  return known.versions[resource] === resourceVersion;
}

async function readIndex(directory: string): Promise<Readonly<Record<string, Entry>>> {
  try {
    return JSON.parse(await readFile(join(directory, INDEX), "utf8")) as Readonly<Record<string, Entry>>;
  } catch {
    // None yet, or not readable: then everything is fetched anew.
    return {};
  }
}
