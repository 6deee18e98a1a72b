import { readFile } from "node:fs/promises";
import { join } from "node:path";

type Env = Readonly<Record<string, string | undefined>>;

/** Files with variables for the agent of a machine, as Istio's packages have them; the earlier wins. */
const FILES = ["var/lib/istio/envoy/sidecar.env", "var/lib/istio/envoy/cluster.env"];

/** The environment with what stands in the machine's files below it: a variable that is really set wins. */
export async function withSidecarEnv(baseDir: string, env: Env): Promise<Env> {
  const merged: Record<string, string | undefined> = {};
  for (const file of FILES.toReversed()) Object.assign(merged, parseEnv(await readFile(join(baseDir, file), "utf8").catch(() => "")));
  for (const [name, value] of Object.entries(env)) if (value !== undefined) merged[name] = value;
  return merged;
}

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
