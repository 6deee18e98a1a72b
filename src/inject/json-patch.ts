import { type Fields, isFields } from "./pod.ts";

/** One step of RFC 6902. */
export type PatchStep =
  | { readonly op: "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

/**
 * The steps that make one JSON value of another. Objects are walked; of lists, items at the same place are, so that a patch stays small and can be
 * read. Depth is bounded by whoever read the values.
 */
export function jsonPatch(from: unknown, to: unknown, path = ""): PatchStep[] {
  if (isFields(from) && isFields(to)) return objectPatch(from, to, path);
  if (Array.isArray(from) && Array.isArray(to)) return listPatch(from, to, path);
  return Object.is(from, to) ? [] : [{ op: "replace", path, value: to }];
}

function objectPatch(from: Fields, to: Fields, path: string): PatchStep[] {
  const steps: PatchStep[] = [];
  for (const key of Object.keys(from)) if (to[key] === undefined) steps.push({ op: "remove", path: `${path}/${escaped(key)}` });
  for (const [key, value] of Object.entries(to)) {
    if (value === undefined) continue;
    const at = `${path}/${escaped(key)}`;
    if (from[key] === undefined) steps.push({ op: "add", path: at, value });
    else steps.push(...jsonPatch(from[key], value, at));
  }
  return steps;
}

function listPatch(from: readonly unknown[], to: readonly unknown[], path: string): PatchStep[] {
  const shared = Math.min(from.length, to.length);
  const steps: PatchStep[] = [];
  for (let index = 0; index < shared; index++) steps.push(...jsonPatch(from[index], to[index], `${path}/${index}`));
  for (let index = from.length - 1; index >= shared; index--) steps.push({ op: "remove", path: `${path}/${index}` });
  for (let index = shared; index < to.length; index++) steps.push({ op: "add", path: `${path}/-`, value: to[index] });
  return steps;
}

const escaped = (key: string): string => key.replaceAll("~", "~0").replaceAll("/", "~1");
