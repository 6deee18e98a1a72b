import { basename, dirname, join } from "node:path";
import { splitDocuments } from "../../config/documents/split-documents.ts";
import { parseDocument } from "../../config/documents/parse-document.ts";
import { judgeMesh } from "../../config/mesh/load-mesh.ts";
import { readMeshFilesIn } from "../../config/mesh/mesh-files.ts";
import { isRecord } from "../../config/parse/reading.ts";
import type { Problem } from "../../config/problem.ts";
import { type DocumentRecord, recordedProblem } from "./document-record.ts";
import type { FoundFile } from "./find-files.ts";

/** What became of one file of mesh configuration. */
export interface MeshJudgement {
  readonly records: readonly DocumentRecord[];
  /** Absolute paths of the files that were judged with it: includes are no configuration objects. */
  readonly paths: readonly string[];
}

/** Whether a file is mesh configuration rather than configuration objects: by its name, and because it says neither apiVersion nor kind. */
export function isMeshFile(file: string, text: string): boolean {
  if (!/mesh|^networks\.ya?ml$/i.test(basename(file))) return false;
  const [first, second] = splitDocuments(text);
  if (first === undefined) return true;
  const parsed = parseDocument(first.text);
  if (second !== undefined || !("parts" in parsed)) return isMeshName(file);
  const content = parsed.parts[0]?.content;
  return isRecord(content) ? !("apiVersion" in content) && !("kind" in content) : isMeshName(file);
}

const isMeshName = (file: string): boolean => /^(mesh|networks)\.ya?ml$/.test(basename(file));
const isNetworks = (file: string): boolean => /^networks\.ya?ml$/i.test(basename(file));

/** Judges mesh.yaml with the files it includes, or networks.yaml, with the rules of istiod. Settings of the environment are left aside. */
export async function judgeMeshFile(found: FoundFile): Promise<MeshJudgement> {
  const dir = dirname(found.path);
  const files = await readMeshFilesIn(dir, isNetworks(found.path) ? undefined : basename(found.path));
  const load = judgeMesh(files, { baseDir: dir, env: {} });
  const problems = load.ok ? load.warnings : load.problems;
  const read = new Set([...files.layers, ...(files.networks === undefined ? [] : [files.networks])].map(({ path }) => path));
  for (const { file } of problems) if (file !== undefined) read.add(file);
  const wanted = isNetworks(found.path) ? [found.path] : [found.path, ...[...read].filter((path) => path !== found.path && !isNetworks(path))];
  const display = (path: string): string => join(dirname(found.file), path.slice(dir.length));
  return { records: wanted.map((path) => recordOf(path, display(path), problems)), paths: wanted };
}

function recordOf(path: string, file: string, problems: readonly Problem[]): DocumentRecord {
  const own = problems.filter((problem) => problem.file === path).map((problem) => recordedProblem(problem, 1));
  const [kind, name] = isNetworks(path) ? ["MeshNetworks", "networks"] : ["MeshConfig", "mesh"];
  return { file, line: 1, kind, namespace: "", name, valid: own.every(({ level }) => level !== "error"), problems: own };
}
