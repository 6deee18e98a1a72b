import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EdgeError, messageOf } from "../base/errors.ts";
import { writeWholeFile } from "../base/whole-file.ts";

/** Where the token is below a base directory. */
export const debugTokenPath = (baseDir: string): string => join(baseDir, "var/lib/istio/debug.token");

/** The token that opens /debug to those who can read the file (mode 0600). Kept across restarts, so that scripts go on working. Throws `EdgeError` where it cannot be kept. */
export async function ensureDebugToken(baseDir: string): Promise<string> {
  const path = debugTokenPath(baseDir);
  const known = await readFile(path, "utf8").catch(() => "");
  if (/^[\w-]{32,}$/.test(known.trim())) return known.trim();
  const token = randomBytes(24).toString("base64url");
  try {
    await writeWholeFile(path, `${token}\n`);
  } catch (cause) {
    throw new EdgeError("state_unwritable", `nothing can be kept in ${dirname(path)}: ${messageOf(cause)}`, {
      cause,
      hint: "let this user write there, or set ISTIO_HOME to a directory where it may",
    });
  }
  return token;
}
