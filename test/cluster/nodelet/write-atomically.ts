import { chmod, chown, mkdir, readdir, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** A file of a volume. */
export interface VolumeFile {
  readonly data: Buffer;
  readonly mode: number;
}

export interface Owner {
  readonly user: number;
  readonly group: number;
}

/**
 * Replaces the files of a volume at once, in the way of the kubelet, which programs that watch rely on: files are links into `..data`, itself a
 * link that is renamed over the old one.
 */
export async function writeAtomically(dir: string, files: ReadonlyMap<string, VolumeFile>, { user, group }: Owner): Promise<void> {
  const fresh = `..${process.hrtime.bigint()}`;
  const old = await readlink(join(dir, "..data")).catch(() => undefined);
  await mkdir(join(dir, fresh), { recursive: true });
  for (const [path, { data, mode }] of files) {
    const file = join(dir, fresh, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, data);
    await chmod(file, mode);
    await chown(file, user, group);
  }
  await symlink(fresh, join(dir, "..next"));
  await rename(join(dir, "..next"), join(dir, "..data"));
  const visible = new Set([...files.keys()].map((path) => path.split("/")[0] ?? ""));
  const links = await ownLinks(dir);
  for (const name of visible) if (!links.includes(name)) await symlink(join("..data", name), join(dir, name));
  for (const name of links) if (!visible.has(name)) await rm(join(dir, name));
  if (old !== undefined) await rm(join(dir, old), { recursive: true });
}

/** Places for volumes inside this one, which are no links, are not ours. */
async function ownLinks(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { withFileTypes: true });
  return entries.filter((entry) => entry.isSymbolicLink() && !entry.name.startsWith("..")).map(({ name }) => name);
}
