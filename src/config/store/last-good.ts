import { readdir, readFile, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../../base/errors.ts";
import { contentHash } from "../../base/hash.ts";
import type { Log } from "../../base/log.ts";
import { writeWholeFile } from "../../base/whole-file.ts";
import type { Origin } from "../object.ts";

/** The last good version of an object whose document is broken now, as it was written. */
export interface LastGoodRecord {
  readonly source: string;
  readonly key: string;
  readonly scope: string;
  readonly slot: string;
  readonly origin: Origin;
  readonly defaultNamespace?: string;
  readonly content: unknown;
}

/** Where last good versions outlive the process. Writes are queued; nothing here ever throws. */
export interface LastGood {
  load(): Promise<readonly LastGoodRecord[]>;
  put(record: LastGoodRecord): void;
  remove(source: string, key: string): void;
  /** Resolves when everything put or removed so far is on disk. */
  flush(): Promise<void>;
}

/** A record larger than this was not written by us. */
const MAX_RECORD_BYTES = 32 * 1024 * 1024;

/**
 * Keeps one file per object under `dir` (`var/lib/istio/last-good`), readable for the owner only. Each is written beside its place,
 * flushed and moved there, so that after a crash it is there whole or not at all.
 */
export function createLastGood(dir: string, deps: { readonly log: Log }): LastGood {
  const { log } = deps;
  const wanted = new Map<string, LastGoodRecord | undefined>();
  let writing: Promise<void> | undefined;

  const want = (path: string, record: LastGoodRecord | undefined): void => {
    wanted.set(path, record);
    writing ??= writeAll().finally(() => {
      writing = undefined;
    });
  };

  async function writeAll(): Promise<void> {
    for (let next = wanted.entries().next(); next.done !== true; next = wanted.entries().next()) {
      const [path, record] = next.value;
      wanted.delete(path);
      try {
        if (record === undefined) await unlink(path).catch(ignoreMissing);
        else await writeWholeFile(path, `${JSON.stringify(record)}\n`);
      } catch (error) {
        log.warn(
          { path, reason: messageOf(error) },
          "cannot keep the last good version of an object on disk; it stays in force until a restart",
        );
      }
    }
  }

  return {
    async load() {
      await removeLeftovers(dir);
      return loadRecords(dir, log);
    },
    put: (record) => want(pathOf(dir, record.source, record.key), record),
    remove: (source, key) => want(pathOf(dir, source, key), undefined),
    async flush() {
      while (writing !== undefined) await writing;
    },
  };
}

/** What another process keeps there, to be looked at only: nothing is written, and what that one is about to move into place stays. */
export const readOnlyLastGood = (dir: string, { log }: { readonly log: Log }): LastGood => ({
  load: () => loadRecords(dir, log),
  put: () => {},
  remove: () => {},
  flush: async () => {},
});

/** Files of a process that ended before it could move them into place. */
async function removeLeftovers(dir: string): Promise<void> {
  const names = await readdir(dir).catch(() => []);
  for (const name of names.filter((one) => one.endsWith(".tmp"))) await unlink(join(dir, name)).catch(() => undefined);
}

async function loadRecords(dir: string, log: Log): Promise<LastGoodRecord[]> {
  const records: LastGoodRecord[] = [];
  const names = await readdir(dir).catch(() => []);
  for (const name of names.sort()) {
    const path = join(dir, name);
    if (!name.endsWith(".json")) continue;
    const record = await readRecord(path);
    if (typeof record !== "string") records.push(record);
    else log.warn({ path, reason: record }, "cannot read a last good version; it is left out");
  }
  return records;
}

/** The record, or why there is none. */
async function readRecord(path: string): Promise<LastGoodRecord | string> {
  try {
    if ((await stat(path)).size > MAX_RECORD_BYTES) return "it is too large";
    const value: unknown = JSON.parse(await readFile(path, "utf8"));
    return isRecord(value) ? value : "it has another form";
  } catch (error) {
    return messageOf(error);
  }
}

function isRecord(value: unknown): value is LastGoodRecord {
  if (typeof value !== "object" || value === null) return false;
  const record: Partial<Record<keyof LastGoodRecord, unknown>> = value;
  const texts = [record.source, record.key, record.scope, record.slot];
  return (
    texts.every((text) => typeof text === "string") && typeof record.origin === "object" && record.origin !== null && "content" in value
  );
}

/** A name a person recognises, and a hash that makes it the only one. */
function pathOf(dir: string, source: string, key: string): string {
  const readable = key.replaceAll(/[^A-Za-z0-9.-]+/g, "_").slice(0, 120);
  return join(dir, `${readable}-${contentHash(`${source}\n${key}`)}.json`);
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
}
