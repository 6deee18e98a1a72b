import { stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { EdgeError } from "../../base/errors.ts";
import { FILE_LIMITS } from "../../sources/files/file-limits.ts";
import { namespaceOfPath } from "../../sources/files/file-names.ts";
import { emptyFound, scanTree } from "../../sources/files/scan-tree.ts";
import { systemReason } from "../../sources/files/system-error.ts";

/** A file to be checked. */
export interface FoundFile {
  /** As the user would write it. */
  readonly file: string;
  /** Absolute. */
  readonly path: string;
  /** Namespace of objects in it that carry none. */
  readonly namespace?: string;
  /** Why it, or the directory of that name, cannot be read. */
  readonly fault?: string;
}

/**
 * The files a user means: a file itself, or all configuration files below a directory, found and given namespaces as the file source of
 * istiod does. Of a directory laid out like `etc/istio`, or one that contains it, the mesh configuration and `conf/` are meant.
 */
export async function findFiles(target: string, cwd: string): Promise<readonly FoundFile[]> {
  const found = await stat(resolve(cwd, target)).catch((error: unknown) => {
    throw new EdgeError("file_unreadable", `${target} cannot be read: ${systemReason(error)}`);
  });
  if (!found.isDirectory()) return [{ file: target, path: resolve(cwd, target) }];
  const inside = join(target, "etc", "istio");
  const dir = (await isDirectory(resolve(cwd, inside))) ? inside : target;
  const layout = await meshLayout(dir, cwd);
  return layout ?? filesBelow(dir, cwd);
}

/** Undefined where the directory is just a directory. */
async function meshLayout(dir: string, cwd: string): Promise<readonly FoundFile[] | undefined> {
  const conf = join(dir, "conf");
  if (!(await isDirectory(resolve(cwd, conf)))) return undefined;
  const mesh: FoundFile[] = [];
  for (const name of ["mesh.yaml", "networks.yaml"]) {
    const path = resolve(cwd, dir, name);
    if (await exists(path)) mesh.push({ file: join(dir, name), path });
  }
  return mesh.length === 0 && basename(resolve(cwd, dir)) !== "istio" ? undefined : [...mesh, ...(await filesBelow(conf, cwd))];
}

async function filesBelow(dir: string, cwd: string): Promise<readonly FoundFile[]> {
  const root = resolve(cwd, dir);
  const found = emptyFound();
  await scanTree("", found, { root, limits: FILE_LIMITS, onDirectory: () => {} });
  const files = [...found.files.keys()].map((scope) => fileAt(scope, { dir, root }));
  const faults = [...found.faults].map(([scope, fault]) => ({ ...fileAt(scope, { dir, root }), fault }));
  return [...files, ...faults].sort((a, b) => (a.file < b.file ? -1 : 1));
}

function fileAt(scope: string, { dir, root }: { readonly dir: string; readonly root: string }): FoundFile {
  const namespace = namespaceOfPath(scope);
  return { file: join(dir, scope), path: join(root, scope), ...(namespace !== undefined && { namespace }) };
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
