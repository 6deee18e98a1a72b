import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { EdgeError, messageOf } from "../base/errors.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** What came with a bundle for a machine. */
export const BUNDLE_FILE = "var/lib/istio/envoy/cluster.env";

/** Files with variables for the agent of a machine, as Istio's packages have them; the earlier wins. */
const FILES = ["var/lib/istio/envoy/sidecar.env", BUNDLE_FILE];

/** Bundles of Istio leave this to the script that its packages start the agent with: without the copies no certificate outlives the agent, and the bundle's token ends within the hour. */
const BUNDLED = { OUTPUT_CERTS: "etc/certs" };

/** The environment with what stands in the machine's files below it: a variable that is really set wins. */
export async function withSidecarEnv(baseDir: string, env: Env): Promise<Env> {
  const merged: Record<string, string | undefined> = (await textOf(join(baseDir, BUNDLE_FILE))) === "" ? {} : { ...BUNDLED };
  for (const file of FILES.toReversed()) Object.assign(merged, parseEnv(await textOf(join(baseDir, file))));
  for (const [name, value] of Object.entries(env)) if (value !== undefined) merged[name] = value;
  return merged;
}

/** Where lines stand that say nothing, as `file:line`. What is in them may be a secret. */
export async function unreadLines(baseDir: string): Promise<readonly string[]> {
  const found = FILES.map(async (name) => {
    const file = join(baseDir, name);
    const lines = (await textOf(file)).split("\n");
    return lines.flatMap((line, i) => (LINE.test(line) || /^\s*(#|;|$)/.test(line) ? [] : [`${file}:${i + 1}`]));
  });
  return (await Promise.all(found)).flat();
}

/** Empty where there is none. One that may not be read is no machine without settings: that would be another machine, or a control plane. */
const textOf = (file: string): Promise<string> =>
  readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return "";
    throw new EdgeError("file_unreadable", `${file} cannot be read: ${messageOf(error)}`, {
      hint: "it must be readable for the user that the agent runs as",
    });
  });

const LINE = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/;

/** Lines `NAME=value`, values bare or quoted, `#` before a comment: what both a shell and systemd take. */
export function parseEnv(text: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const [, name, value] = LINE.exec(line) ?? [];
    if (name !== undefined && value !== undefined) found[name] = unquoted(value.trim());
  }
  return found;
}

function unquoted(value: string): string {
  const [, single, double] = /^(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?$/.exec(value) ?? [];
  if (single !== undefined) return single;
  if (double !== undefined) return double.replaceAll(/\\(["\\$`])/g, "$1");
  return value.replace(/\s+#.*$/, "");
}
