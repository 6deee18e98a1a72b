import { readDocuments, type TextOrigin, unreadableText } from "../../config/documents/read-documents.ts";
import type { RawObject } from "../../config/object.ts";
import { FILE_LIMITS } from "../../sources/files/file-limits.ts";
import { readConfigFile } from "../../sources/files/read-config-file.ts";
import type { Host } from "../command.ts";
import { type DocumentRecord, judgeDocuments } from "./document-record.ts";
import { type FoundFile, findFiles } from "./find-files.ts";
import { isMeshFile, judgeMeshFile } from "./judge-mesh.ts";

/** Stands for standard input where a file is named. */
export const STDIN = "-";

/** Checks files, directories and standard input with the rules of the control plane; a record for each document, in order. */
export async function validateTargets(targets: readonly string[], host: Pick<Host, "cwd" | "stdin">): Promise<readonly DocumentRecord[]> {
  const meshRecords: DocumentRecord[] = [];
  const judged = new Set<string>();
  const texts: { readonly found: FoundFile; readonly text: string | undefined; readonly fault: string | undefined }[] = [];
  for (const target of targets) {
    if (target === STDIN) {
      texts.push({ found: { file: STDIN, path: STDIN }, text: await host.stdin(), fault: undefined });
      continue;
    }
    for (const found of await findFiles(target, host.cwd)) {
      const { text, fault } = await readText(found);
      if (text === undefined || !isMeshFile(found.file, text)) texts.push({ found, text, fault });
      else if (!judged.has(found.path)) {
        const { records, paths } = await judgeMeshFile(found);
        meshRecords.push(...records);
        for (const path of paths) judged.add(path);
      }
    }
  }
  const documents = texts
    .filter(({ found }) => !judged.has(found.path))
    .flatMap(({ found, text, fault }) => documentsOf(found, text, fault));
  return [...meshRecords, ...judgeDocuments(documents)];
}

async function readText(found: FoundFile): Promise<{ readonly text: string | undefined; readonly fault: string | undefined }> {
  if (found.fault !== undefined) return { text: undefined, fault: found.fault };
  const reading = await readConfigFile(found.path, FILE_LIMITS);
  if (reading.type === "text") return { text: reading.text, fault: undefined };
  return { text: undefined, fault: reading.type === "gone" ? "is no file, or is gone" : reading.fault };
}

function documentsOf(found: FoundFile, text: string | undefined, fault: string | undefined): readonly RawObject[] {
  const origin: TextOrigin = {
    source: "istioctl",
    file: found.file,
    scope: found.file,
    ...(found.namespace !== undefined && { defaultNamespace: found.namespace }),
  };
  return text === undefined ? [unreadableText(origin, fault ?? "cannot be read")] : [...readDocuments(text, origin)];
}
