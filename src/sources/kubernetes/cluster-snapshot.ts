import { readFile } from "node:fs/promises";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { writeWholeFile } from "../../base/whole-file.ts";

/** What a cluster said last, kept where it outlives the process: a control plane that starts while the API server is away serves this. */
export interface ClusterSnapshot {
  load(): Promise<SavedState | undefined>;
  /** Something changed; `state` is asked for when it is written. */
  save(state: () => Iterable<readonly [scope: string, text: string]>): void;
  /** Resolves when what was last saved is on disk. */
  flush(): Promise<void>;
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

/** Keeps the state in one file, one object a line. Secrets are not given to it. */
export function createClusterSnapshot(path: string, { server, clock, log }: SnapshotOptions): ClusterSnapshot {
  let wanted: (() => Iterable<readonly [string, string]>) | undefined;
  let cancel: (() => void) | undefined;
  let writing: Promise<void> = Promise.resolve();
  let complained = false;

  const write = (): void => {
    cancel?.();
    cancel = undefined;
    const state = wanted;
    wanted = undefined;
    if (state === undefined) return;
    writing = writing.then(async () => {
      try {
        await writeWholeFile(path, textOf({ server, at: clock.now() }, state()));
      } catch (error) {
        if (!complained)
          log.warn({ path, reason: messageOf(error) }, "the state of the cluster cannot be kept on disk for a restart without it");
        complained = true;
      }
    });
  };

  return {
    load: async () => parseState(await readFile(path, "utf8").catch(() => ""), server),
    save(state) {
      wanted = state;
      cancel ??= clock.after(DELAY_MS, write);
    },
    flush() {
      write();
      return writing;
    },
  };
}

function textOf(head: { readonly server: string; readonly at: number }, state: Iterable<readonly [string, string]>): string {
  const lines = [JSON.stringify(head)];
  for (const [scope, text] of state) lines.push(`[${JSON.stringify(scope)},${text}]`);
  return `${lines.join("\n")}\n`;
}

/** A file that is not whole, or of another server, says nothing. */
function parseState(text: string, server: string): SavedState | undefined {
  try {
    const [first = "", ...lines] = text.trimEnd().split("\n");
    const head = JSON.parse(first) as { readonly server?: unknown; readonly at?: unknown };
    if (head.server !== server || typeof head.at !== "number") return undefined;
    const objects = new Map<string, unknown>();
    for (const line of lines) {
      const [scope, content] = JSON.parse(line) as readonly [string, unknown];
      objects.set(scope, content);
    }
    return { objects, at: head.at };
  } catch {
    return undefined;
  }
}
