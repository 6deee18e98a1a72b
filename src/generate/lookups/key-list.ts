import { contentHash } from "../../base/hash.ts";

const ids = new WeakMap<readonly string[], string>();

/** A list of keys in short. Most namespaces see the same objects, and what is worked out from a list serves all who have an equal one. */
export function keyListId(keys: readonly string[]): string {
  const known = ids.get(keys) ?? contentHash(keys.join("\n"));
  ids.set(keys, known);
  return known;
}
