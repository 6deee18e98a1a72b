import type { KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { EdgeError, messageOf } from "../base/errors.ts";
import { Secret } from "../base/secret.ts";
import { writeNewFile } from "../base/whole-file.ts";
import { generateKeys, privateKeyPem, readPrivateKey } from "../pki/keys.ts";

/** Where the key lies that signs join tokens. */
export const joinKeyPath = (baseDir: string): string => join(baseDir, "var/lib/istio/join-token.key");

/** The key that signs join tokens, made at the first start (mode 0600). Throws `EdgeError` where what is there cannot be used. */
export async function ensureJoinKey(baseDir: string): Promise<Secret<KeyObject>> {
  const known = await readJoinKey(baseDir);
  if (known !== undefined) return known;
  const path = joinKeyPath(baseDir);
  try {
    await writeNewFile(path, privateKeyPem((await generateKeys("P-256")).privateKey));
  } catch (error) {
    throw unusable(path, messageOf(error));
  }
  const made = await readJoinKey(baseDir);
  if (made === undefined) throw unusable(path, "it vanished");
  return made;
}

/** The key, where there is one. Throws `EdgeError` where it cannot be read. */
export async function readJoinKey(baseDir: string): Promise<Secret<KeyObject> | undefined> {
  const path = joinKeyPath(baseDir);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw unusable(path, messageOf(error));
  });
  if (text === undefined) return undefined;
  const key = readPrivateKey(text);
  if (typeof key === "string") throw unusable(path, key);
  if (key.asymmetricKeyType !== "ec" || key.asymmetricKeyDetails?.namedCurve !== "prime256v1")
    throw unusable(path, "it is not a P-256 key");
  return new Secret(key);
}

const unusable = (path: string, reason: string): EdgeError =>
  new EdgeError("ca_unusable", `the key for join tokens in ${path} cannot be used: ${reason}`, {
    hint: "restore the file, or remove it: a new key is made, and tokens that were not used yet are void",
  });
