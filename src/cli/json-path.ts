import type { Json } from "../debug/api-types.ts";

/** What stands at a path of object keys; undefined where there is nothing. */
export function at(json: Json | undefined, ...path: readonly string[]): Json | undefined {
  let here = json;
  for (const key of path) {
    if (typeof here !== "object" || here === null || Array.isArray(here)) return undefined;
    here = (here as { readonly [key: string]: Json })[key];
  }
  return here;
}

/** A text or number as text; empty where there is neither. */
export function textAt(json: Json | undefined, ...path: readonly string[]): string {
  const value = at(json, ...path);
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** A list; empty where there is none. */
export function listAt(json: Json | undefined, ...path: readonly string[]): readonly Json[] {
  const value = at(json, ...path);
  return Array.isArray(value) ? value : [];
}

/** The texts of a list. */
export const textsAt = (json: Json | undefined, ...path: readonly string[]): readonly string[] =>
  listAt(json, ...path).map((value) => textAt(value));
