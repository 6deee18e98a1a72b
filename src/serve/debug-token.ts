import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeWholeFile } from "../base/whole-file.ts";

export const debugTokenPath = (baseDir: string): string => join(baseDir, "var/lib/istio/debug.token");

/** The token that opens /debug to those who can read the file (mode 0600). Kept across restarts, so that scripts go on working. */
export async function ensureDebugToken(baseDir: string): Promise<string> {
  const path = debugTokenPath(baseDir);
  const known = await readFile(path, "utf8").catch(() => "");
  if (/^[\w-]{32,}$/.test(known.trim())) return known.trim();
  const token = randomBytes(24).toString("base64url");
  await writeWholeFile(path, `${token}\n`);
  return token;
}
