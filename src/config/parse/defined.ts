/** A record whose undefined members are gone: with `exactOptionalPropertyTypes` that is what an optional field means. */
export type Defined<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  readonly [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Leaves out the members that are undefined. */
export function defined<T extends object>(record: T): Defined<T> {
  const kept: Record<string, unknown> = {};
  for (const name in record) if (record[name] !== undefined) kept[name] = record[name];
  return kept as Defined<T>;
}
