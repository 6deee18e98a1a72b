import { defined } from "../parse/defined.ts";
import type { Fields } from "../parse/fields.ts";

/** What an endpoint stands for, mostly a Pod. */
export interface ObjectReference {
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** Reads a reference; undefined where there is none. */
export function readReference(owner: Fields, name: string): ObjectReference | undefined {
  if (!owner.has(name)) return undefined;
  const ref = owner.object(name);
  return defined({ kind: ref.text("kind"), namespace: ref.text("namespace"), name: ref.text("name") });
}
