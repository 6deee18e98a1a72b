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

/** What can be sent as a token: one that was copied with its line breaks cannot. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** Where there is something that cannot be a token, as a sentence. */
export async function unusableToken(baseDir: string): Promise<string | undefined> {
  for (const file of FILES) {
    const text = await textOf(join(baseDir, file));
    if (text !== "" && !isSendable(text))
      return `what is in ${join(baseDir, file)} is no token: that is one line of at most ${LONGEST_TOKEN} characters`;
  }
  return undefined;
}

const textOf = async (file: string): Promise<string> => (await readFile(file, "utf8").catch(() => "")).trim();
const isSendable = (text: string): boolean => text.length <= LONGEST_TOKEN && SENDABLE.test(text);

/** Reads the workload's token, each time anew because it is replaced while we run; undefined where there is none. */
export async function readWorkloadToken(baseDir: string): Promise<Secret<string> | undefined> {
  for (const file of FILES) {
    const text = await textOf(join(baseDir, file));
    if (isSendable(text)) return new Secret(text);
  }
  return undefined;
}
