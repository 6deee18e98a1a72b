import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { contentHash } from "../base/hash.ts";
import { Secret } from "../base/secret.ts";

/** Files of one directory that only make sense together. */
export interface PemFiles {
  /** Text by file name; only those that are there. Any of them may hold a private key. */
  readonly texts: ReadonlyMap<string, Secret<string>>;
  readonly absent: readonly string[];
  /** What could not be read and why. */
  readonly unreadable: readonly string[];
  /** Changes exactly when what is found does. */
  readonly hash: string;
}

const LARGEST_FILE = 1024 * 1024;

/** Reads the named files of a directory. Never throws: what is wrong is part of the answer. */
export async function readPemFiles(directory: string, names: readonly string[]): Promise<PemFiles> {
  const texts = new Map<string, Secret<string>>();
  const absent: string[] = [];
  const unreadable: string[] = [];
  for (const name of names) {
    const path = join(directory, name);
    try {
      const text = await readFile(path, "utf8");
      if (text.length > LARGEST_FILE) unreadable.push(`${path} is larger than ${LARGEST_FILE} bytes`);
      else texts.set(name, new Secret(text));
    } catch (error) {
      if (isAbsence(error)) absent.push(name);
      else unreadable.push(`${path} cannot be read: ${messageOf(error)}`);
    }
  }
  const content = JSON.stringify([[...texts].map(([name, text]) => [name, text.reveal()]), unreadable]);
  return { texts, absent, unreadable, hash: contentHash(content) };
}

const isAbsence = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");

export interface FollowOptions {
  readonly directory: string;
  readonly names: readonly string[];
  readonly clock: Clock;
  /** The reading the caller already has. */
  readonly since: PemFiles;
  changed(files: PemFiles): void;
}

/** How often the files are looked at: by the clock alone, since watches get lost and certificates are renewed rarely. */
const LOOK_MS = 1_000;

/**
 * Calls `changed` when the files differ and two looks in a row found the same: a set that is being written is not caught half way. What was the same at
 * two looks is not read again until a file is another one or was written to. Gives a stop function.
 */
export function followPemFiles({ directory, names, clock, since, changed }: FollowOptions): () => void {
  let taken = since.hash;
  let last = since.hash;
  let [traceBefore, traceRead] = ["", ""];
  let stopped = false;
  let cancel: () => void = () => {};
  const look = async (): Promise<void> => {
    const trace = await traceOf(directory, names);
    // Times of files have steps of some milliseconds, so what is read in the same step as it is written may change once more and look the same. A trace that
    // was there a look ago is older than that.
    const isKnown = trace === traceRead;
    const files = isKnown ? undefined : await readPemFiles(directory, names);
    if (stopped) return;
    if (files !== undefined) {
      const isSettled = files.hash === last;
      if (isSettled && files.hash !== taken) {
        taken = files.hash;
        changed(files);
      }
      last = files.hash;
      traceRead = isSettled && trace === traceBefore && files.unreadable.length === 0 ? trace : "";
    }
    traceBefore = trace;
    cancel = clock.after(LOOK_MS, () => void look());
  };
  cancel = clock.after(LOOK_MS, () => void look());
  return () => {
    stopped = true;
    cancel();
  };
}

/** Which files there are, and when they were last written to: much cheaper to find out than what is in them. */
async function traceOf(directory: string, names: readonly string[]): Promise<string> {
  const traces = await Promise.all(
    names.map((name) =>
      stat(join(directory, name), { bigint: true, throwIfNoEntry: false }).then(
        (found) => (found === undefined ? "absent" : `${found.dev} ${found.ino} ${found.size} ${found.ctimeNs}`),
        (error: unknown) => (isAbsence(error) ? "absent" : messageOf(error)),
      ),
    ),
  );
  return traces.join("\n");
}
