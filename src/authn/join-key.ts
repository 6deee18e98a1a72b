import type { KeyObject } from "node:crypto";
import { link, mkdir, open, readFile, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EdgeError, messageOf } from "../base/errors.ts";
import { Secret } from "../base/secret.ts";
import { generateKeys, privateKeyPem, readPrivateKey } from "../pki/keys.ts";

/** Where the key lies that signs join tokens. */
export const joinKeyPath = (baseDir: string): string => join(baseDir, "var/lib/istio/join-token.key");

/** The key that signs join tokens, made at the first start (mode 0600). Throws `EdgeError` where what is there cannot be used. */
export async function ensureJoinKey(baseDir: string): Promise<Secret<KeyObject>> {
  const known = await readJoinKey(baseDir);
  if (known !== undefined) return known;
  const path = joinKeyPath(baseDir);
  try {
    await writeNew(path, privateKeyPem((await generateKeys("P-256")).privateKey));
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

/** Puts a complete file in place, and never over one that another process made meanwhile. */
async function writeNew(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const beside = `${path}.${process.pid}.new`;
  const handle = await open(beside, "w", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(beside, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    await unlink(beside);
  }
}

const unusable = (path: string, reason: string): EdgeError =>
  new EdgeError("ca_unusable", `the key for join tokens in ${path} cannot be used: ${reason}`, {
    hint: "restore the file, or remove it: a new key is made, and tokens that were not used yet are void",
  });
