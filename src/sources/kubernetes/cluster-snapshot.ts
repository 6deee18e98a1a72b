import { appendFile, constants, readFile } from "node:fs/promises";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { createSlice } from "../../base/slice.ts";
import { writeWholeFile } from "../../base/whole-file.ts";

/** What a cluster said last, kept where it outlives the process: a control plane that starts while the API server is away serves this. */
export interface ClusterSnapshot {
  load(): Promise<SavedState | undefined>;
  /** Objects came, changed or went; `state` is asked for when that is written. */
  save(scopes: Iterable<string>, state: SnapshotState): void;
  /** Resolves when what was last saved is on disk. */
  flush(): Promise<void>;
}

/** All there is, as JSON by scope. */
export interface SnapshotState extends Iterable<readonly [scope: string, text: string]> {
  readonly size: number;
  get(scope: string): string | undefined;
}

export interface SavedState {
  /** Documents by scope, as JSON. */
  readonly objects: ReadonlyMap<string, unknown>;
  /** When it was true, ms since the epoch. */
  readonly at: number;
}

export interface SnapshotOptions {
  /** Whose state it is: that of another server is not taken for it. */
  readonly server: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Changes are written this long after the first of them, so that a burst is written once. */
const DELAY_MS = 5_000;
/** A file may hold so many lines that are no longer true, or as many as there are objects, before it is written anew. */
const LEAST_STALE = 1_000;
/** A file that is not there is not made by appending: its first line would be missing. */
const TO_ITS_END = constants.O_WRONLY | constants.O_APPEND;

/**
 * Keeps the state in one file: a line for whose state it is, then a line for each object. What changes is appended, so that one endpoint among thousands of
 * objects costs a line, and the file is written anew when that has made it twice as long. Secrets are not given to it.
 */
export function createClusterSnapshot(path: string, { server, clock, log }: SnapshotOptions): ClusterSnapshot {
  const changed = new Set<string>();
  let state: SnapshotState | undefined;
  let cancel: (() => void) | undefined;
  let writing: Promise<void> = Promise.resolve();
  /** Lines appended to the file since this process wrote it; undefined while it holds something else, or part of something. */
  let appended: number | undefined;
  let complained = false;

  const writeChanges = async (scopes: readonly string[], now: SnapshotState): Promise<void> => {
    const before = appended;
    appended = undefined;
    if (before !== undefined && before + scopes.length <= Math.max(LEAST_STALE, now.size)) {
      const lines = scopes.map((scope) => lineOf(scope, now.get(scope)));
      const text = `${[JSON.stringify({ at: clock.now(), lines: lines.length }), ...lines].join("\n")}\n`;
      // Where the file is gone, or a part was written, all of it is written anew.
      const whole = await appendFile(path, text, { flag: TO_ITS_END, flush: true }).then(
        () => true,
        () => false,
      );
      if (whole) {
        appended = before + scopes.length;
        return;
      }
    }
    await writeWholeFile(path, await wholeText({ server, at: clock.now() }, now, clock));
    appended = 0;
  };

  const write = (): void => {
    cancel?.();
    cancel = undefined;
    writing = writing.then(async () => {
      const scopes = [...changed];
      changed.clear();
      if (state === undefined || scopes.length === 0) return;
      try {
        await writeChanges(scopes, state);
      } catch (error) {
        if (!complained)
          log.warn({ path, reason: messageOf(error) }, "the state of the cluster cannot be kept on disk for a restart without it");
        complained = true;
      }
    });
  };

  return {
    load: async () => parseState(await readFile(path, "utf8").catch(() => ""), server),
    save(scopes, now) {
      state = now;
      for (const scope of scopes) changed.add(scope);
      cancel ??= clock.after(DELAY_MS, write);
    },
    flush() {
      write();
      return writing;
    },
  };
}

/** An object that is gone is a scope alone. */
const lineOf = (scope: string, text: string | undefined): string =>
  text === undefined ? `[${JSON.stringify(scope)}]` : `[${JSON.stringify(scope)},${text}]`;

/** Put together in slices: nobody waits while it is. What changes meanwhile is appended afterwards. */
async function wholeText(head: Head, state: SnapshotState, clock: Clock): Promise<string> {
  const slice = createSlice(clock);
  const lines = [JSON.stringify(head)];
  for (const [scope, text] of state) {
    lines.push(lineOf(scope, text));
    const rest = slice();
    if (rest !== undefined) await rest;
  }
  return `${lines.join("\n")}\n`;
}

interface Head {
  readonly server: string;
  readonly at: number;
}

/** A file that cannot be read, or is of another server, says nothing; what was appended to it and is not all there does not count. */
function parseState(text: string, server: string): SavedState | undefined {
  try {
    const [first = "", ...lines] = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
    const head = JSON.parse(first) as Partial<Head>;
    if (head.server !== server || typeof head.at !== "number") return undefined;
    const objects = new Map<string, unknown>();
    let at = head.at;
    let batch: { readonly at: number; readonly lines: number } | undefined;
    let batched: (readonly [string, unknown?])[] = [];
    for (const line of lines) {
      if (line === "") continue;
      const parsed = JSON.parse(line) as readonly [string, unknown?] | { readonly at: number; readonly lines: number };
      if ("lines" in parsed) [batch, batched] = [parsed, []];
      else if (batch === undefined) objects.set(parsed[0], parsed[1]);
      else if (batched.push(parsed) === batch.lines) {
        at = batch.at;
        for (const [scope, content] of batched) {
          if (content === undefined) objects.delete(scope);
          else objects.set(scope, content);
        }
      }
    }
    return { objects, at };
  } catch {
    return undefined;
  }
}
