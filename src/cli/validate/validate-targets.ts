import type { Host } from "../command.ts";
import { type DocumentRecord, judgeDocuments } from "./document-record.ts";
import { readTargets } from "./read-targets.ts";

/** Checks files, directories and standard input with the rules of the control plane; a record for each document, in order. */
export async function validateTargets(targets: readonly string[], host: Pick<Host, "cwd" | "stdin">): Promise<readonly DocumentRecord[]> {
  const { mesh, documents } = await readTargets(targets, host);
  return [...mesh.flatMap(({ records }) => records), ...judgeDocuments(documents)];
}
