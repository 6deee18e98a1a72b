import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { finishSliced } from "../base/slice.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import { KeptReadings, type Reading, readingOf, readReadings, writeReadings } from "../config/documents/kept-readings.ts";
import type { ConfigStore } from "../config/store/store-types.ts";
import { ownBuild } from "./own-build.ts";

export interface KeptDocumentsOptions {
  readonly baseDir: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Readings of documents, kept on disk for the next start of the same program: most of what a start would do has been done before. */
export interface KeptDocuments {
  readonly readings: KeptReadings;
  /** Once the first configuration is in force all is read, and what was read is written now and then. Ends with the returned function. */
  follow(store: Pick<ConfigStore, "judged">, inForce: Promise<void>): () => Promise<void>;
  /** Something else is in force. */
  changed(): void;
}

/** A start under load has better things to do in its first seconds. */
const FIRST_WRITE_MS = 2_000;
/** What a change adds is little: a start after it reads that little. */
const WRITE_MS = 60_000;
/** A longer file is neither written nor read. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** Opens `var/lib/istio/documents`. Without it, and whatever is wrong with it, everything is read as on a first start. */
export async function openDocuments({ baseDir, clock, log }: KeptDocumentsOptions): Promise<KeptDocuments> {
  const path = join(baseDir, "var/lib/istio/documents");
  const build = await ownBuild();
  const readings = new KeptReadings(await readKept(path, build));
  /** Whose documents are written; none before the first configuration is in force. */
  let store: Pick<ConfigStore, "judged"> | undefined;
  let stopped = false;
  let cancel: (() => void) | undefined;
  let writing = Promise.resolve();
  const write = async (): Promise<void> => {
    cancel = undefined;
    if (store === undefined) return;
    try {
      const bytes = await finishSliced(writeReadings(build, worthKeeping(store)), clock);
      if (bytes.length <= MAX_FILE_BYTES && !stopped) await writeWholeFile(path, bytes);
      letGo(bytes);
    } catch (error) {
      log.warn({ path, reason: messageOf(error) }, "cannot keep what documents say; after a restart all of them are read again");
    }
  };
  const writeIn = (ms: number): void => {
    cancel ??= clock.after(ms, () => {
      writing = writing.then(write); // Two at once would write one file.
    });
  };
  return {
    readings,
    follow(followed, inForce) {
      void inForce.then(() => {
        if (stopped) return;
        store = followed;
        let found = 0;
        for (const _ of worthKeeping(followed)) found += 1;
        log.debug({ documents: found, known: readings.taken }, "the first configuration is read");
        // Otherwise every one of them was known and none is gone: the file says it already.
        if (found !== readings.taken || found !== readings.size) writeIn(FIRST_WRITE_MS);
        readings.forget();
      });
      return () => {
        stopped = true;
        store = undefined;
        cancel?.();
        return writing;
      };
    },
    changed() {
      if (store !== undefined) writeIn(WRITE_MS);
    },
  };
}

function* worthKeeping(store: Pick<ConfigStore, "judged">): Iterable<Reading> {
  for (const judged of store.judged()) {
    const reading = readingOf(judged);
    if (reading !== undefined) yield reading;
  }
}

async function readKept(path: string, build: string): Promise<readonly Reading[]> {
  try {
    if ((await stat(path)).size > MAX_FILE_BYTES) return [];
    const bytes = await readFile(path);
    const readings = readReadings(build, bytes);
    letGo(bytes);
    return readings;
  } catch {
    return [];
  }
}

/** Some MB that nobody needs any more: now, not when they are collected. Small ones may share their memory with others, and stay. */
function letGo({ buffer, byteLength }: NonSharedBuffer): void {
  if (buffer.byteLength === byteLength) buffer.transfer(0);
}
