import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { type Log, silentLog } from "../../base/log.ts";
import type { RawObject, SourceEvent } from "../../config/object.ts";
import type { FileTimes } from "./file-limits.ts";
import { type FileSource, fileSource } from "./file-source.ts";

/** What looks unlikely is not believed for so long: writers of these tests may get no processor for a while. */
export const PATIENT = { missing: 10_000, fewer: 10_000, empty: 10_000 };

const cleanups: (() => Promise<void> | void)[] = [];

/** Something to undo when the test is over; last in, first out. */
export const onCleanUp = (cleanup: () => Promise<void> | void): void => void cleanups.push(cleanup);

/** Undoes all that `onCleanUp` was told. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

async function listed(objects: Iterable<RawObject> | AsyncIterable<RawObject>): Promise<readonly RawObject[]> {
  const list: RawObject[] = [];
  for await (const one of objects) list.push(one);
  return list;
}

/** The text of one document. */
export const object = (name: string, value: string | number = 1): string =>
  `kind: Thing\nmetadata: {name: ${name}}\nspec: {value: ${value}}\n`;

/** A real directory, the source watching it, and what it has said so far as scope → documents. */
export class Rig {
  readonly dir: string;
  readonly events: (Extract<SourceEvent, { type: "replace" }> | { readonly type: "reset"; readonly objects: readonly RawObject[] })[] = [];
  readonly scopes = new Map<string, readonly RawObject[]>();
  readonly warnings: string[] = [];
  readonly source: FileSource;
  readonly #abort = new AbortController();
  #done: Promise<void> | undefined;

  constructor(times: Partial<FileTimes> = {}, dir = join(mkdtempSync(join(tmpdir(), "files-")), "conf")) {
    this.dir = dir;
    mkdirSync(dir, { recursive: true });
    const log: Log = {
      ...silentLog,
      warn: (_: unknown, text?: string) => {
        this.warnings.push(text ?? "");
      },
    };
    this.source = fileSource(dir, { clock: systemClock, log, times: { retry: 50, ...times } });
    onCleanUp(async () => {
      await this.stop();
      rmSync(dirname(dir), { recursive: true, force: true });
    });
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.dir, path)), { recursive: true });
    writeFileSync(join(this.dir, path), text);
  }

  /** As careful programs do: a whole new file takes the place of the old one. */
  replace(path: string, text: string): void {
    this.write(`${path}.tmp`, text);
    renameSync(join(this.dir, `${path}.tmp`), join(this.dir, path));
  }

  async start(): Promise<this> {
    this.#done = this.#run();
    await this.until(() => this.events.length > 0);
    return this;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    for await (const told of this.source.events(this.#abort.signal)) {
      const event = told.type === "reset" ? { ...told, objects: await listed(told.objects) } : told;
      if (event.type === "reset") {
        this.scopes.clear();
        for (const raw of event.objects) this.scopes.set(raw.scope ?? "", [...(this.scopes.get(raw.scope ?? "") ?? []), raw]);
      } else {
        for (const { scope, objects } of event.scopes) {
          if (objects.length === 0) this.scopes.delete(scope);
          else this.scopes.set(scope, objects);
        }
      }
      this.events.push(event);
    }
  }

  async until(condition: () => boolean, ms = 60_000): Promise<void> {
    const deadline = performance.now() + ms;
    while (!condition()) {
      if (performance.now() > deadline)
        throw new Error(`waited ${ms} ms in vain; scopes: ${JSON.stringify(Object.fromEntries(this.values()))}`);
      await systemClock.sleep(2);
    }
  }

  /** Lets everything that is under way settle. */
  async quiet(ms = 150): Promise<void> {
    for (let seen = -1; seen !== this.events.length; ) {
      seen = this.events.length;
      await systemClock.sleep(ms);
    }
  }

  /** `name=value` of every document of a scope; `!` for one that cannot be read. */
  say(scope: string): string {
    return (this.scopes.get(scope) ?? []).map((raw) => (raw.fault === undefined ? `${nameOf(raw)}=${specValueOf(raw)}` : "!")).join(" ");
  }

  values(): Map<string, string> {
    return new Map([...this.scopes.keys()].sort().map((scope) => [scope, this.say(scope)]));
  }
}

const fieldOf = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
export const nameOf = (raw: RawObject): unknown => fieldOf(fieldOf(raw.content, "metadata"), "name");
const specValueOf = (raw: RawObject): unknown => fieldOf(fieldOf(raw.content, "spec"), "value");
