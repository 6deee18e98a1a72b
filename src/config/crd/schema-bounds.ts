import type { CelRules } from "./cel-rules.ts";
import type { JsonSchema } from "./json-schema.ts";
import type { SchemaBound, SchemaBounds } from "./message-bounds.ts";

const VALIDATIONS = "x-kubernetes-validations";

/** A schema with rules written into it. */
export const withValidations = (schema: JsonSchema, rules: CelRules): JsonSchema =>
  withBounds(schema, Object.fromEntries(Object.entries(rules).map(([path, validations]) => [path, { validations }])));

/** A schema with bounds written into it, so that the API server holds them as our own reading does. */
export function withBounds(schema: JsonSchema, bounds: SchemaBounds): JsonSchema {
  return Object.entries(bounds).reduce((result, [path, bound]) => put(result, partsOf(path), bound), schema);
}

const partsOf = (path: string): readonly string[] => path.match(/[^.[\]{}]+|\[\]|\{\}/g) ?? [];

/** Bounds are shared by kinds of which not every one has every field they speak of. */
function put(schema: JsonSchema, [part, ...rest]: readonly string[], bound: SchemaBound): JsonSchema {
  if (part === undefined) return { ...schema, ...boundsOf(bound, schema) };
  const { items, additionalProperties: values, properties } = schema;
  if (part === "[]") return items === undefined ? schema : { ...schema, items: put(items, rest, bound) };
  if (part === "{}") return values === undefined ? schema : { ...schema, additionalProperties: put(values, rest, bound) };
  const property = properties?.[part];
  return property === undefined ? schema : { ...schema, properties: { ...properties, [part]: put(property, rest, bound) } };
}

function boundsOf({ pattern, uniqueBy, required, validations, ...bounds }: SchemaBound, schema: JsonSchema): Partial<JsonSchema> {
  return {
    ...bounds,
    ...(required !== undefined && { required: [...new Set([...(schema.required ?? []), ...required])] }),
    ...(pattern !== undefined && { pattern: pattern.source }),
    ...(validations !== undefined && { [VALIDATIONS]: [...validations, ...(schema[VALIDATIONS] ?? [])] }),
    ...(uniqueBy !== undefined && { "x-kubernetes-list-type": "map" as const, "x-kubernetes-list-map-keys": [uniqueBy] }),
  };
}
