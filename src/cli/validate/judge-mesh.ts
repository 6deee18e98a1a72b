import { basename, dirname, join } from "node:path";
import { parseDocument } from "../../config/documents/parse-document.ts";
import { splitDocuments } from "../../config/documents/split-documents.ts";
import { judgeMesh } from "../../config/mesh/load-mesh.ts";
import { type MeshFiles, readMeshFilesIn } from "../../config/mesh/mesh-files.ts";
import { isRecord } from "../../config/parse/reading.ts";
import type { Problem } from "../../config/problem.ts";
import { byLine, type DocumentRecord, recordedProblem } from "./document-record.ts";
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

/** Judges mesh.yaml with the files it includes, or networks.yaml alone, with the rules of istiod. Settings of the environment are left aside. */
export async function judgeMeshFile(found: FoundFile): Promise<MeshJudgement> {
  const dir = dirname(found.path);
  const files = isNetworks(found.path)
    ? onlyNetworks(await readMeshFilesIn(dir), found.path)
    : withoutNetworks(await readMeshFilesIn(dir, basename(found.path)));
  const load = judgeMesh(files, { baseDir: dir, env: {} });
  const problems = load.ok ? load.warnings : load.problems;
  const others = [...files.layers, ...files.faults.map(({ file }) => ({ path: file }))].map(({ path }) => path);
  const paths = [...new Set([found.path, ...others])];
  const display = (path: string): string => join(dirname(found.file), path.slice(dir.length));
  return { records: paths.map((path) => recordOf(path, display(path), problems)), paths };
}

/** Each file is judged by itself, so that a fault in one does not hide those of the other. */
const onlyNetworks = (files: MeshFiles, path: string): MeshFiles => ({
  ...files,
  layers: [],
  faults: files.faults.filter(({ file }) => file === path),
});
const withoutNetworks = (files: MeshFiles): MeshFiles => ({
  ...files,
  networks: undefined,
  faults: files.faults.filter(({ file }) => !isNetworks(file)),
});

function recordOf(path: string, file: string, problems: readonly Problem[]): DocumentRecord {
  const own = problems
    .filter((problem) => problem.file === path)
    .map((problem) => recordedProblem(problem, 1))
    .sort(byLine);
  const [kind, name] = isNetworks(path) ? ["MeshNetworks", "networks"] : ["MeshConfig", "mesh"];
  return { file, line: 1, kind, namespace: "", name, valid: own.every(({ level }) => level !== "error"), problems: own };
}
