import { readFile } from "node:fs/promises";
import { EdgeError, messageOf } from "../base/errors.ts";
import type { StructValue } from "../wire/field-writer.ts";
import { parseYaml } from "./proxy-config.ts";

/**
 * The ProxyConfig in a file with a MeshConfig (`defaultConfig`), as bundles for machines have one; undefined where there is no file. What else stands there
 * is for the control plane. Throws `EdgeError` for a file that cannot be read.
 */
export async function readMeshFile(file: string): Promise<Readonly<Record<string, StructValue>> | undefined> {
  try {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
      throw error;
    });
    if (text === undefined) return undefined;
    const { defaultConfig = {} } = text.trim() === "" ? {} : objectOf((await parseYaml(text)) ?? {});
    return objectOf(defaultConfig ?? {});
  } catch (error) {
    throw new EdgeError("usage", `${file} cannot be read: ${messageOf(error).split("\n", 1).join()}`, {
      hint: "it is a MeshConfig as YAML, with the proxy's configuration in defaultConfig",
    });
  }
}

function objectOf(value: unknown): Record<string, StructValue> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("it is not an object");
  return value as Record<string, StructValue>;
}
