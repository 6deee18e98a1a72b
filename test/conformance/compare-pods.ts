import { isFields } from "../../src/inject/pod.ts";
import { canonicalQuantity } from "../../src/inject/quantity.ts";

/** Where one field of two pods differs. */
export interface Difference {
  readonly path: string;
  readonly ours: unknown;
  readonly theirs: unknown;
}

export interface Comparison {
  readonly compared: number;
  readonly differences: readonly Difference[];
}

/** Not compared, by the README of the corpus: images, the status annotation, order of environment and volumes, how YAML is written. */
const IGNORED = [/\/image$/, /sidecar\.istio\.io~1status/, /creationTimestamp$/];

/** Compares two objects leaf by leaf. Members of lists stand under their names, what is empty counts as absent, JSON in texts is compared as JSON. */
export function comparePods(ours: unknown, theirs: unknown): Comparison {
  const [left, right] = [leaves(ours), leaves(theirs)];
  const paths = [...new Set([...left.keys(), ...right.keys()])].filter((path) => !IGNORED.some((pattern) => pattern.test(path)));
  const differences = paths
    .filter((path) => left.get(path) !== right.get(path))
    .map((path) => ({ path, ours: left.get(path), theirs: right.get(path) }));
  return { compared: paths.length, differences };
}

function leaves(value: unknown, path = "", found = new Map<string, unknown>()): Map<string, unknown> {
  if (Array.isArray(value)) for (const [at, item] of value.entries()) leaves(item, `${path}/${keyOf(item, path) ?? at}`, found);
  else if (isFields(value)) for (const [key, item] of Object.entries(value)) leaves(item, `${path}/${key.replaceAll("/", "~1")}`, found);
  else if (value !== null && value !== undefined) note(value, path, found);
  return found;
}

function note(value: unknown, path: string, found: Map<string, unknown>): void {
  const json = typeof value === "string" && /^\s*[[{]/.test(value) ? jsonOf(value) : undefined;
  if (json !== undefined) leaves(json, `${path}!`, found);
  else found.set(path, /\/resources\/(limits|requests)\//.test(path) ? canonicalQuantity(String(value)) : value);
}

function keyOf(item: unknown, path: string): string | undefined {
  if (!isFields(item)) return undefined;
  if (path.endsWith("/volumeMounts")) return String(item.mountPath).replaceAll("/", "~1");
  return typeof item.name === "string" ? item.name : undefined;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
