import type { Fields } from "../pod.ts";

/** A field, unless what it would hold is empty: nothing is written where there is nothing to say. */
export const filled = (name: string, value: Fields | readonly unknown[]): Fields =>
  Object.keys(value).length === 0 ? {} : { [name]: value };
