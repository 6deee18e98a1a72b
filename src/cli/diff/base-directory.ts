import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { EdgeError } from "../../base/errors.ts";
import { silentLog } from "../../base/log.ts";
import { type LastGood, readOnlyLastGood } from "../../config/store/last-good.ts";
import type { ConfigStore } from "../../config/store/store-types.ts";
import type { FileLimits } from "../../sources/files/file-limits.ts";
import { fileSource } from "../../sources/files/file-source.ts";
import { systemReason } from "../../sources/files/system-error.ts";

/** Where the parts of a mesh configuration lie. */
export interface Layout {
  readonly baseDir: string;
  /** Where mesh.yaml is; undefined where there can be none. */
  readonly meshDir: string | undefined;
  /** Where the objects are; undefined: mesh.yaml says. */
  readonly objects: string | undefined;
  readonly lastGood: LastGood | undefined;
}

/** Finds out what a directory is: one with `etc/istio` in it, `etc/istio` itself, or (only where it is named) any directory of YAML files. */
export async function layoutOf(dir: string, named: boolean): Promise<Layout> {
  const found = await stat(dir).catch((error: unknown) => {
    throw new EdgeError("file_unreadable", `${dir} cannot be read: ${systemReason(error)}`);
  });
  if (!found.isDirectory()) throw new EdgeError("file_unreadable", `${dir} is no directory`);
  const inside = join(dir, "etc", "istio");
  if (await isDirectory(inside)) return { baseDir: dir, meshDir: inside, objects: undefined, lastGood: lastGoodOf(dir) };
  if (await isDirectory(join(dir, "conf"))) return { baseDir: dir, meshDir: dir, objects: join(dir, "conf"), lastGood: undefined };
  if (named) return { baseDir: dir, meshDir: undefined, objects: dir, lastGood: undefined };
  throw new EdgeError("file_unreadable", `there is no etc/istio in ${dir} to compare with`, {
    hint: "set ISTIO_HOME, or name a directory with --base",
  });
}

/** What istiod keeps of objects whose documents are broken now. It may be running. */
const lastGoodOf = (dir: string): LastGood => readOnlyLastGood(join(dir, "var/lib/istio/last-good"), { log: silentLog });

/** A place configuration comes from, as mesh.yaml names it. */
export interface Source {
  readonly scheme: string;
  readonly target: string;
  readonly address: string;
  readonly assumed: boolean;
}

/** A directory as a source. */
export const filesIn = (dir: string): Source => ({ scheme: "fs", target: resolve(dir), address: `fs://${dir}`, assumed: false });

/** Puts what the directories say in force; gives the addresses of sources that are no directories. */
export async function readSources(store: ConfigStore, sources: readonly Source[], limits: Partial<FileLimits>): Promise<readonly string[]> {
  const directories = sources.filter(({ scheme }) => scheme === "fs").map(({ target }) => ({ target, source: sourceOf(target, limits) }));
  store.setSources(directories.map(({ source }) => source.name));
  for (const { target, source } of directories) {
    await checkReadable(target);
    for await (const event of source.events(new AbortController().signal)) {
      await store.stage(source.name, event);
      break; // what comes later is no part of the current configuration
    }
  }
  store.commit();
  return sources.filter(({ scheme, assumed }) => scheme !== "fs" && !assumed).map(({ address }) => address);
}

const sourceOf = (dir: string, limits: Partial<FileLimits>) => fileSource(dir, { clock: systemClock, log: silentLog, limits });

/** A source waits for a directory until it can be read; here nobody would want to. */
async function checkReadable(dir: string): Promise<void> {
  await readdir(dir).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw new EdgeError("file_unreadable", `${dir} cannot be read: ${systemReason(error)}`);
  });
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
