import { realpath } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { messageOf } from "../../base/errors.ts";
import { contentHash } from "../../base/hash.ts";
import type { FieldPath } from "../problem.ts";
import type { ProblemCode } from "../problem-codes.ts";
import { isMap, type JsonMap } from "./merge-layers.ts";
import { type FileRead, readTextFile } from "./read-file.ts";
import { type LineFinder, lineFinder, readYaml } from "./read-yaml.ts";

/** One file that was found and read. */
export interface MeshFile {
  /** As shown to users: under the base directory as that was given. */
  readonly path: string;
  readonly content: JsonMap;
  readonly lineOf: LineFinder;
}

/** Something wrong with a file, before its fields are looked at. */
export interface FileFault {
  readonly file: string;
  readonly code: ProblemCode;
  readonly path: FieldPath;
  readonly message: string;
  readonly line?: number;
}

/** All that mesh configuration is read from, as it was on the disk at one moment. */
export interface MeshFiles {
  /** mesh.yaml (if it is there) and its includes, in the order in which they are applied. */
  readonly layers: readonly MeshFile[];
  readonly networks: MeshFile | undefined;
  readonly faults: readonly FileFault[];
  /** Every file that matters, also those that are absent: what a watcher has to look at. */
  readonly paths: readonly string[];
  /** Changes exactly when the content or the presence of one of them does. */
  readonly hash: string;
}

/** Configuration of the mesh that is not in a file: the ConfigMap of a cluster. */
export interface MeshText {
  /** What it is called in messages. */
  readonly title: string;
  readonly mesh?: string;
  readonly networks?: string;
  /** What it stands over: a field that it writes wins. */
  readonly under?: MeshText;
}

/** The same files over what a cluster says: a field that a file writes wins. */
export function overClusterMesh(files: MeshFiles, { title, mesh = "", networks = "", under }: MeshText): MeshFiles {
  const [own, others] = [readYaml(mesh), readYaml(networks)];
  const faults = [own, others].flatMap((read): FileFault[] => {
    if (!read.ok) return [{ file: title, code: "document.unreadable", path: [], message: read.message, line: read.line }];
    return isMap(read.value) ? [] : [{ file: title, code: "document.unreadable", path: [], message: "must be a map of fields" }];
  });
  const content = own.ok && isMap(own.value) ? own.value : {};
  const meshNetworks = others.ok && networks.trim() !== "" ? { meshNetworks: others.value } : {};
  const layer: MeshFile = { path: title, content: { ...content, ...meshNetworks }, lineOf: lineFinder(mesh) };
  const over = {
    ...files,
    layers: [layer, ...files.layers],
    faults: [...faults, ...files.faults],
    hash: contentHash(JSON.stringify([files.hash, mesh, networks])),
  };
  return under === undefined ? over : overClusterMesh(over, under);
}

/** Reads mesh.yaml, the files it includes, and networks.yaml. An absent mesh.yaml or networks.yaml is no fault, an absent include is. */
export const readMeshFiles = (baseDir: string): Promise<MeshFiles> => readMeshFilesIn(join(baseDir, "etc", "istio"));

/** The same for files that lie elsewhere or bear another name, as those that are checked before they are put in place. */
export async function readMeshFilesIn(dir: string, mainName = "mesh.yaml"): Promise<MeshFiles> {
  const reading: Reading = { faults: [], seen: [] };
  const main = await readOne(join(dir, mainName), reading, "optional");
  const included: MeshFile[] = [];
  for (const [index, name] of includesOf(main, reading).entries()) {
    const file = await readInclude({ dir, name, index, from: main?.path ?? "" }, reading);
    if (file !== undefined) included.push(file);
  }
  const networks = await readOne(join(dir, "networks.yaml"), reading, "optional");
  return {
    layers: main === undefined ? [] : [main, ...included],
    networks,
    faults: reading.faults,
    paths: reading.seen.map(({ path }) => path),
    hash: contentHash(JSON.stringify(reading.seen)),
  };
}

interface Reading {
  readonly faults: FileFault[];
  readonly seen: { readonly path: string; readonly read: FileRead | { readonly state: "refused"; readonly message: string } }[];
}

async function readOne(path: string, reading: Reading, presence: "optional" | "required"): Promise<MeshFile | undefined> {
  const read = await readTextFile(path);
  reading.seen.push({ path, read });
  const fault = (message: string, line?: number): undefined => {
    reading.faults.push({ file: path, code: "document.unreadable", path: [], message, ...(line !== undefined && { line }) });
  };
  if (read.state === "absent") return presence === "required" ? fault("is not there") : undefined;
  if (read.state === "unreadable") return fault(read.message);
  const yaml = readYaml(read.text);
  if (!yaml.ok) return fault(yaml.message, yaml.line);
  if (!isMap(yaml.value)) return fault("must be a map of fields", 1);
  return { path, content: yaml.value, lineOf: lineFinder(read.text) };
}

function includesOf(main: MeshFile | undefined, reading: Reading): readonly string[] {
  const include = main?.content.include ?? [];
  if (Array.isArray(include) && include.every((name) => typeof name === "string" && name !== "")) return include;
  reading.faults.push({ file: main?.path ?? "", code: "schema.wrong-type", path: ["include"], message: "must be a list of file names" });
  return [];
}

interface Include {
  readonly dir: string;
  readonly name: string;
  readonly index: number;
  readonly from: string;
}

/** Includes stay inside etc/istio, whatever links say: mesh.yaml may be writable by someone who may not read the rest of the machine. */
async function readInclude(include: Include, reading: Reading): Promise<MeshFile | undefined> {
  const { dir, name, index, from } = include;
  const path = isAbsolute(name) ? name : join(dir, name);
  const fault = (message: string): undefined => {
    reading.faults.push({ file: from, code: "field.invalid", path: ["include", index], message });
  };
  if (!isInside(resolve(dir), resolve(path))) return fault(`"${name}" is outside ${dir}`);
  const refuse = (message: string): undefined => {
    reading.seen.push({ path, read: { state: "refused", message } });
    return fault(message);
  };
  try {
    if (!isInside(await realpath(dir), await realpath(path))) return refuse(`"${name}" leads outside ${dir}`);
  } catch (error) {
    return refuse(isMissing(error) ? `"${name}" is not there` : messageOf(error));
  }
  const file = await readOne(path, reading, "required");
  if (file?.content.include === undefined) return file;
  const line = file.lineOf(["include"]);
  const nested = { file: path, code: "field.invalid", path: ["include"], message: "only mesh.yaml itself may include files" } as const;
  reading.faults.push(line === undefined ? nested : { ...nested, line });
  return undefined;
}

function isInside(dir: string, path: string): boolean {
  const way = relative(dir, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

const isMissing = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "ENOENT";
