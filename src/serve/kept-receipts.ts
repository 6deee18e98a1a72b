import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { contentHash } from "../base/hash.ts";
import type { Log } from "../base/log.ts";
import { finishSliced, runSliced } from "../base/slice.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import { inputsDigest } from "../config/inputs.ts";
import type { World } from "../generate/world.ts";
import type { KeptReceipts } from "../xds/receipts.ts";
import type { XdsServer } from "../xds/server.ts";

/** What receipts depend on, and where they are kept. */
export interface ReceiptOptions {
  readonly baseDir: string;
  /** Which program this is. */
  readonly build: string;
  readonly world: Pick<World, "engine" | "inputs">;
  /** All else that decides what is offered. */
  readonly settings: unknown;
  readonly clock: Clock;
  readonly log: Log;
}

/** What proxies were offered and hold, kept on disk for the next start of the same program on the same inputs. */
export interface ReceiptFile extends KeptReceipts {
  /** There were proxies before the restart, which may come back. */
  readonly awaited: boolean;
  /** From now on the receipts of this server are written whenever nothing has happened for a while. Ends with the returned function, which waits for a write. */
  follow(xds: Pick<XdsServer, "receipts">): () => Promise<void>;
}

const QUIET_MS = 800;
/** All receipts are made anew for a write, so where changes follow each other not each is written: who is killed in between sends more after the restart. */
const SPACING_MS = 5_000;
/** A longer file was not written by us. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** What the file says: from what, and what. */
interface Kept {
  readonly origin: string;
  readonly receipts: ReadonlySet<string>;
}

/** Reads the receipts of the last run. They count as long as the inputs are those they were written for. */
export async function openReceipts({ baseDir, build, world, settings, clock, log }: ReceiptOptions): Promise<ReceiptFile> {
  const path = join(baseDir, "var/lib/istio/receipts");
  const program = contentHash(`${build}\n${JSON.stringify(settings)}`);
  const origin = createOrigin(program, world);
  let kept = await readKept(path);

  let source: Pick<XdsServer, "receipts"> | undefined;
  let stirredAt = 0;
  let writtenAt = Number.NEGATIVE_INFINITY;
  let cancel: (() => void) | undefined;
  let writing = Promise.resolve();
  /** Writes if it has been quiet for long enough, and looks again later if not. */
  const look = (): void => {
    const rest = Math.max(stirredAt + QUIET_MS, writtenAt + SPACING_MS) - clock.monotonic();
    cancel = rest > 0 ? clock.after(rest, look) : undefined;
    if (rest > 0) return;
    writtenAt = clock.monotonic();
    writing = writing.then(write); // Two at once would write one file.
  };
  const write = async (): Promise<void> => {
    if (source === undefined) return;
    const [since, revision] = [stirredAt, world.engine.revision];
    const found = new Set<string>();
    try {
      await runSliced(collect(source.receipts(), found), clock);
      const from = await finishSliced(origin.steps(), clock);
      if (stirredAt === since && world.engine.revision === revision) await writeWholeFile(path, [from, ...found].join("\n"));
    } catch (error) {
      log.warn({ path, reason: messageOf(error) }, "cannot keep what proxies were sent; after a restart all of it is worked out again");
    }
  };

  return {
    awaited: kept !== undefined && kept.receipts.size > 0,
    has(receipt) {
      if (kept !== undefined && kept.origin !== origin.now()) kept = undefined;
      return kept?.receipts.has(receipt) === true;
    },
    drop() {
      kept = undefined;
    },
    stirred() {
      stirredAt = clock.monotonic();
      if (source !== undefined && cancel === undefined) cancel = clock.after(QUIET_MS, look);
    },
    follow(xds) {
      source = xds;
      return () => {
        source = undefined;
        cancel?.();
        return writing;
      };
    },
  };
}

/** What decides what is offered: the program and its inputs, as one digest. */
interface Origin {
  /** The digest as of now, with a pause after each step. */
  steps(): Generator<void, string>;
  now(): string;
}

/** A digest costs a walk over all inputs, so it is kept for as long as they stay as they are. */
function createOrigin(program: string, world: ReceiptOptions["world"]): Origin {
  let known = { at: -1, digest: "" };
  function* steps(): Generator<void, string> {
    const { revision } = world.engine;
    if (known.at === revision) return known.digest;
    const digest = contentHash(`${program}\n${yield* inputsDigest(world.inputs)}`);
    if (world.engine.revision === revision) known = { at: revision, digest };
    return digest;
  }
  return {
    steps,
    now() {
      const walk = steps();
      for (let step = walk.next(); ; step = walk.next()) if (step.done === true) return step.value;
    },
  };
}

function* collect(receipts: Iterable<string | undefined>, found: Set<string>): Iterable<void> {
  for (const receipt of receipts) {
    if (receipt === undefined) yield;
    else found.add(receipt);
  }
}

async function readKept(path: string): Promise<Kept | undefined> {
  try {
    if ((await stat(path)).size > MAX_FILE_BYTES) return undefined;
    const [origin = "", ...receipts] = (await readFile(path, "utf8")).split("\n");
    return { origin, receipts: new Set(receipts) };
  } catch {
    return undefined;
  }
}
