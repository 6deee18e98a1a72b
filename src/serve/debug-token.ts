import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

export const debugTokenPath = (baseDir: string): string => join(baseDir, "var/lib/istio/debug.token");

/** The token that opens /debug to those who can read the file (mode 0600). Kept across restarts, so that scripts go on working. */
export async function ensureDebugToken(baseDir: string): Promise<string> {
  const path = debugTokenPath(baseDir);
  const known = await readFile(path, "utf8").catch(() => "");
  if (/^[\w-]{32,}$/.test(known.trim())) return known.trim();
  const token = randomBytes(24).toString("base64url");
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(`${path}.new`, `${token}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
  return token;
}
