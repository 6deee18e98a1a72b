import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";

/**
 * Gives a message whose maps (and JSON objects held as `google.protobuf.Struct`) list their keys in order, all the way down. The message is
 * returned as it is where it is in order already, which it usually is; otherwise only the path to the disorder is copied.
 */
export function withSortedMaps<M extends Message>(schema: DescMessage, message: M): M {
  const fields = fieldsWithMaps(schema);
  return fields.length === 0 ? message : (sortMessage(fields, message as unknown as Fields) as unknown as M);
}

type Fields = Readonly<Record<string, unknown>>;

const STRUCT = "google.protobuf.Struct";
const memo = new WeakMap<DescMessage, readonly DescField[]>();
const reachesMap = new WeakMap<DescMessage, boolean>();

/** The fields below which a map can be found: most messages have none, and then nothing of them is ever visited. */
function fieldsWithMaps(schema: DescMessage): readonly DescField[] {
  let fields = memo.get(schema);
  if (fields === undefined) {
    fields = schema.fields.filter((field) => leadsToMap(field, new Set()));
    memo.set(schema, fields);
  }
  return fields;
}

function leadsToMap(field: DescField, seen: Set<DescMessage>): boolean {
  if (field.fieldKind === "map") return true;
  const schema = messageOfField(field);
  if (schema === undefined || seen.has(schema)) return false;
  const known = reachesMap.get(schema);
  if (known !== undefined) return known;
  seen.add(schema);
  const found = schema.fields.some((inner) => leadsToMap(inner, seen));
  if (found) reachesMap.set(schema, true);
  else if (seen.size === 1) reachesMap.set(schema, false);
  return found;
}

const messageOfField = (field: DescField): DescMessage | undefined =>
  field.fieldKind === "message" || field.fieldKind === "list" ? field.message : undefined;

function sortMessage(fields: readonly DescField[], message: Fields): Fields {
  let copy: Record<string, unknown> | undefined;
  for (const field of fields) {
    const { key, value } = fieldValue(field, message);
    if (value === undefined) continue;
    const sorted = sortField(field, value);
    if (sorted === value) continue;
    copy ??= Object.assign(Object.create(Object.getPrototypeOf(message)), message) as Record<string, unknown>;
    copy[key] = field.oneof === undefined ? sorted : { case: field.localName, value: sorted };
  }
  return copy ?? message;
}

function fieldValue(field: DescField, message: Fields): { readonly key: string; readonly value: unknown } {
  if (field.oneof === undefined) return { key: field.localName, value: message[field.localName] };
  const choice = message[field.oneof.localName] as { readonly case?: string; readonly value?: unknown } | undefined;
  return { key: field.oneof.localName, value: choice?.case === field.localName ? choice.value : undefined };
}

function sortField(field: DescField, value: unknown): unknown {
  switch (field.fieldKind) {
    case "map":
      return sortMap(value as Fields, field.mapKind === "message" ? field.message : undefined);
    case "list":
      return field.message === undefined ? value : sortList(value as readonly unknown[], (item) => sortValue(field.message, item));
    default:
      return sortValue(field.message, value);
  }
}

function sortValue(schema: DescMessage | undefined, value: unknown): unknown {
  if (schema === undefined || typeof value !== "object" || value === null) return value;
  if (schema.typeName === STRUCT && !("$typeName" in value)) return sortJson(value);
  return sortMessage(fieldsWithMaps(schema), value as Fields);
}

function sortMap(map: Fields, schema: DescMessage | undefined): Fields {
  return sortEntries(map, (value) => sortValue(schema, value));
}

function sortJson(value: unknown): unknown {
  if (Array.isArray(value)) return sortList(value, sortJson);
  return typeof value === "object" && value !== null ? sortEntries(value as Fields, sortJson) : value;
}

function sortList(list: readonly unknown[], sort: (item: unknown) => unknown): readonly unknown[] {
  let changed = false;
  const sorted = list.map((item) => {
    const next = sort(item);
    changed ||= next !== item;
    return next;
  });
  return changed ? sorted : list;
}

function sortEntries(entries: Fields, sort: (value: unknown) => unknown): Fields {
  const keys = Object.keys(entries);
  const ordered = keys.every((key, index) => index === 0 || (keys[index - 1] ?? "") < key) ? keys : keys.toSorted();
  let changed = ordered !== keys;
  const sorted: Record<string, unknown> = {};
  for (const key of ordered) {
    const value = sort(entries[key]);
    changed ||= value !== entries[key];
    Object.defineProperty(sorted, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return changed ? sorted : entries;
}
