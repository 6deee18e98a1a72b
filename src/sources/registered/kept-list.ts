import { readFile } from "node:fs/promises";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { writeWholeFile } from "../../base/whole-file.ts";

/** A list that outlives the process. Nothing here throws. */
export interface KeptList<T> {
  load(): Promise<readonly T[]>;
  /** Something changed: what `all` gives is written, soon. */
  save(all: () => readonly T[]): void;
  flush(): Promise<void>;
}

export interface KeptListOptions<T> {
  readonly path: string;
  /** What it is a list of, for sentences. */
  readonly of: string;
  isEntry(value: unknown): value is T;
  readonly log: Log;
}

/** One file, written whole; while a write is under way, further changes make one more. What cannot be read is left out. */
export function keptList<T>({ path, of, isEntry, log }: KeptListOptions<T>): KeptList<T> {
  let wanted: (() => readonly T[]) | undefined;
  let writing: Promise<void> | undefined;
  const write = async (): Promise<void> => {
    while (wanted !== undefined) {
      const all = wanted;
      wanted = undefined;
      await writeWholeFile(path, `${JSON.stringify(all())}\n`).catch((error: unknown) =>
        log.warn({ path, reason: messageOf(error) }, `${of} cannot be kept on disk; a restart would forget them`),
      );
    }
    writing = undefined;
  };
  return {
    async load() {
      try {
        const value: unknown = JSON.parse(await readFile(path, "utf8"));
        return Array.isArray(value) ? value.filter(isEntry) : [];
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ENOENT"))
          log.warn({ path, reason: messageOf(error) }, `${of} of before cannot be read; they are told again when agents connect`);
        return [];
      }
    },
    save(all) {
      wanted = all;
      writing ??= write();
    },
    flush: async () => writing,
  };
}
