import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { contentHash } from "../base/hash.ts";

/**
 * What this program is: the entry of a bundle names all its parts by their content. What one build has kept on disk of its own work is for that build
 * alone. Where it was started in another way, from its sources for instance, nobody can tell, and nothing kept is for it.
 */
export async function ownBuild(): Promise<string> {
  const [, entry = ""] = process.argv;
  if (!entry.endsWith(".mjs")) return randomUUID();
  return readFile(entry).then(contentHash, () => randomUUID());
}
