import { readDocuments, type TextOrigin, unreadableText } from "../../config/documents/read-documents.ts";
import type { RawObject } from "../../config/object.ts";
import { FILE_LIMITS } from "../../sources/files/file-limits.ts";
import { readConfigFile, takeText } from "../../sources/files/read-config-file.ts";
import type { Host } from "../command.ts";
import { type FoundFile, findFiles } from "./find-files.ts";
import { isMeshFile, judgeMeshFile, type MeshJudgement } from "./judge-mesh.ts";

/** Stands for standard input where a file is named. */
export const STDIN = "-";

/** What the files that a user names hold. */
export interface Targets {
  /** Files of mesh configuration, each with what it includes. */
  readonly mesh: readonly (MeshJudgement & { readonly found: FoundFile })[];
  /** Configuration objects, not judged yet. */
  readonly documents: readonly RawObject[];
}

interface TargetText {
  readonly found: FoundFile;
  readonly text: string | undefined;
  readonly fault: string | undefined;
}

/** Reads files, directories and standard input. `namespace` is that of objects that carry none, where no directory says it. */
export async function readTargets(targets: readonly string[], host: Pick<Host, "cwd" | "stdin">, namespace?: string): Promise<Targets> {
  const mesh: Targets["mesh"][number][] = [];
  const judged = new Set<string>();
  const texts: TargetText[] = [];
  for (const target of targets) {
    if (target === STDIN) {
      texts.push({ found: { file: STDIN, path: STDIN }, text: await host.stdin(), fault: undefined });
      continue;
    }
    for (const found of await findFiles(target, host.cwd)) {
      const { text, fault } = await readText(found);
      if (text === undefined || !isMeshFile(found.file, text)) texts.push({ found, text, fault });
      else if (!judged.has(found.path)) {
        const judgement = await judgeMeshFile(found);
        mesh.push({ ...judgement, found });
        for (const path of judgement.paths) judged.add(path);
      }
    }
  }
  const documents = texts.filter(({ found }) => !judged.has(found.path)).flatMap((text) => documentsOf(text, namespace));
  return { mesh, documents };
}

async function readText(found: FoundFile): Promise<Pick<TargetText, "text" | "fault">> {
  if (found.fault !== undefined) return { text: undefined, fault: found.fault };
  const reading = await readConfigFile(found.path, FILE_LIMITS);
  if (reading.type === "text") return { text: takeText(reading), fault: undefined };
  return { text: undefined, fault: reading.type === "gone" ? "is no file, or is gone" : reading.fault };
}

function documentsOf({ found, text, fault }: TargetText, fallback: string | undefined): readonly RawObject[] {
  const namespace = found.namespace ?? fallback;
  const origin: TextOrigin = {
    source: "istioctl",
    file: found.file,
    scope: found.file,
    ...(namespace !== undefined && { defaultNamespace: namespace }),
  };
  return text === undefined ? [unreadableText(origin, fault ?? "cannot be read")] : [...readDocuments(text, origin)];
}
