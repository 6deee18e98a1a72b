/** What `JSON.parse` gives. */
type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** The same value with the keys of every object in order: equal values then are equal as text, whoever wrote them. */
export function sortedJson<T extends Json>(value: T): T;
export function sortedJson(value: Json): Json {
  if (Array.isArray(value)) return value.map((one: Json) => sortedJson(one));
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, one]: readonly [string, Json]) => [key, sortedJson(one)]));
}
