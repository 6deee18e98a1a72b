import type { DescField, DescMessage } from "@bufbuild/protobuf";

/** JSON-shaped content of a map. */
export type JsonMap = Readonly<Record<string, unknown>>;

/**
 * Puts one file over another: maps are joined key by key, however deep; lists and single values are replaced; null takes a value
 * back to its default; extension providers are replaced by name, as Istio does. Where a message is described, both spellings of a field
 * are the same field, and a member of a oneof takes the place of its siblings.
 */
export function mergeMaps(base: JsonMap, over: JsonMap, message?: DescMessage): JsonMap {
  const result = new Map(Object.entries(canonicalKeys(base, message)));
  for (const [key, value] of Object.entries(canonicalKeys(over, message))) {
    const field = message?.fields.find((candidate) => candidate.jsonName === key);
    for (const sibling of field?.oneof?.fields ?? []) if (sibling !== field) result.delete(sibling.jsonName);
    if (value === null) result.delete(key);
    else result.set(key, mergeValues(result.get(key), value, field));
  }
  return Object.fromEntries(result);
}

/** The same content with every field of the message under its JSON name, so that files written in either spelling can be joined. */
export function canonicalKeys(map: JsonMap, message: DescMessage | undefined): JsonMap {
  if (message === undefined) return map;
  return Object.fromEntries(
    Object.entries(map).map(([key, value]) => {
      const field = message.fields.find((candidate) => candidate.jsonName === key || candidate.name === key);
      return field === undefined ? [key, value] : [field.jsonName, canonicalValue(value, field)];
    }),
  );
}

function canonicalValue(value: unknown, field: DescField): unknown {
  if (field.fieldKind === "message" && isMap(value)) return canonicalKeys(value, openMessage(field.message));
  if (field.fieldKind === "list" && field.listKind === "message" && Array.isArray(value)) {
    return value.map((item) => (isMap(item) ? canonicalKeys(item, openMessage(field.message)) : item));
  }
  if (field.fieldKind === "map" && field.mapKind === "message" && isMap(value)) {
    const of = openMessage(field.message);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, isMap(item) ? canonicalKeys(item, of) : item]));
  }
  return value;
}

function mergeValues(base: unknown, over: unknown, field: DescField | undefined): unknown {
  if (field?.jsonName === "extensionProviders" && Array.isArray(base) && Array.isArray(over)) return mergeByName(base, over);
  if (!isMap(base) || !isMap(over)) return over;
  return mergeMaps(base, over, field?.fieldKind === "message" ? openMessage(field.message) : undefined);
}

function mergeByName(base: readonly unknown[], over: readonly unknown[]): readonly unknown[] {
  const nameOf = (item: unknown): unknown => (isMap(item) ? item.name : undefined);
  const replaced = new Set(over.map(nameOf));
  return [...base.filter((item) => !replaced.has(nameOf(item))), ...over];
}

/** Google's own messages (Duration, Struct, wrappers) have a JSON form that is not their fields. */
const openMessage = (message: DescMessage): DescMessage | undefined =>
  message.typeName.startsWith("google.protobuf.") ? undefined : message;

/** Whether a value of YAML has fields. */
export const isMap = (value: unknown): value is JsonMap => typeof value === "object" && value !== null && !Array.isArray(value);
