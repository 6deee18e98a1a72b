import { clone, type DescField, type DescMessage, isFieldSet, isMessage, type Message } from "@bufbuild/protobuf";
import { AnySchema, isWrapperDesc } from "@bufbuild/protobuf/wkt";

/** A message as the library holds it: one property per field or oneof. */
type Fields = Record<string, unknown>;

/** How repeated fields of the patch are taken. */
export type ListMode = "append" | "replace";

/** What both messages are, and how lists in them are merged: appended where nothing is said. */
export interface MergeRules {
  readonly schema: DescMessage;
  readonly lists?: ListMode | undefined;
}

/**
 * Merges `patch` into `target` as protobuf does, with Istio's exceptions (reference of EnvoyFilter, `MERGE`): a field that the patch sets
 * replaces a scalar, goes on inside a message, is appended to a list, and replaces the entry of a map. A duration is one value, not seconds
 * and nanoseconds merged apart. A wrapped scalar is a message: `false` and `0` say nothing in it, so they take effect only where nothing is
 * there. An `Any` is replaced whole; where the content of two shall be merged, `mergeAny` does it.
 */
export function mergeInto({ schema, lists = "append" }: MergeRules, target: Message, patch: Message): void {
  const into = target as unknown as Fields;
  const from = patch as unknown as Fields;
  for (const field of schema.fields) {
    if (isFieldSet(patch, field))
      setField(into, field, merged(field, { present: fieldOf(into, field), given: fieldOf(from, field), lists }));
  }
}

interface Both {
  readonly present: unknown;
  readonly given: unknown;
  readonly lists: ListMode;
}

function merged(field: DescField, { present, given, lists }: Both): unknown {
  switch (field.fieldKind) {
    case "list": {
      const items = (given as readonly unknown[]).map((item) => copyOf(field.message, item));
      return lists === "replace" ? items : [...(present as readonly unknown[]), ...items];
    }
    case "map": {
      const entries = Object.entries(given as Fields).map(([key, value]) => [key, copyOf(field.message, value)] as const);
      return { ...(present as Fields), ...Object.fromEntries(entries) };
    }
    case "message":
      return mergedMessage(field.message, { present, given, lists });
    default:
      return given;
  }
}

const TAKEN_WHOLE: ReadonlySet<string> = new Set([
  "google.protobuf.Duration",
  "google.protobuf.Timestamp",
  "google.protobuf.Any",
  "google.protobuf.Value",
  "google.protobuf.ListValue",
]);

function mergedMessage(schema: DescMessage, { present, given, lists }: Both): unknown {
  if (schema.typeName === "google.protobuf.Struct") return { ...(present as Fields | undefined), ...structuredClone(given as Fields) };
  if (isWrapperDesc(schema) && present !== undefined && saysNothing(given)) return present;
  if (schema.typeName === AnySchema.typeName && saysNothingNew(present, given)) return present;
  if (TAKEN_WHOLE.has(schema.typeName) || !isMessage(present, schema) || !isMessage(given, schema)) return copyOf(schema, given);
  mergeInto({ schema, lists }, present, given);
  return present;
}

/** Whether a wrapped scalar, which the library holds bare outside of oneofs, is the one that protobuf does not write. */
function saysNothing(given: unknown): boolean {
  const value = isMessage(given) && "value" in given ? given.value : given;
  return value instanceof Uint8Array ? value.length === 0 : value === false || value === "" || value === 0 || value === 0n;
}

/** Whether an `Any` only repeats the type of the one that is there. */
const saysNothingNew = (present: unknown, given: unknown): boolean =>
  isMessage(present, AnySchema) && isMessage(given, AnySchema) && present.typeUrl === given.typeUrl && given.value.length === 0;

/** Messages are copied, so that a patch and what was made with it share nothing; scalars and bytes are never written to. */
function copyOf(schema: DescMessage | undefined, value: unknown): unknown {
  if (schema === undefined) return value;
  if (isMessage(value, schema)) return clone(schema, value);
  return typeof value === "object" && value !== null ? structuredClone(value) : value;
}

function fieldOf(message: Fields, field: DescField): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const choice = message[field.oneof.localName] as { readonly case: string | undefined; readonly value?: unknown };
  return choice.case === field.localName ? choice.value : undefined;
}

function setField(message: Fields, field: DescField, value: unknown): void {
  if (field.oneof === undefined) message[field.localName] = value;
  else message[field.oneof.localName] = { case: field.localName, value };
}
