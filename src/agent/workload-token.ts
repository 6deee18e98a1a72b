import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Secret } from "../base/secret.ts";
import { unreadableFile } from "./unreadable-file.ts";

/** The token meant for the CA: below the base directory. */
export const MESH_TOKEN = "var/run/secrets/tokens/istio-token";
/** The other is the one every pod has. */
const FILES = [MESH_TOKEN, "var/run/secrets/kubernetes.io/serviceaccount/token"];
const LONGEST_TOKEN = 16 * 1024;

/** Where there is a token that is not ours to read, as a sentence. */
export const unreadableToken = (baseDir: string): Promise<string | undefined> => unreadableFile(FILES.map((file) => join(baseDir, file)));

/** Reads the workload's token, each time anew because it is replaced while we run; undefined where there is none. */
export async function readWorkloadToken(baseDir: string): Promise<Secret<string> | undefined> {
  for (const file of FILES) {
    const text = (await readFile(join(baseDir, file), "utf8").catch(() => "")).trim();
    if (text !== "" && text.length <= LONGEST_TOKEN) return new Secret(text);
  }
  return undefined;
}
