import { create, type DescField, type DescMessage, type MessageShape, type Registry } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { quote } from "../../base/quote.ts";
import type { Report } from "../kind-def.ts";
import type { FieldPath } from "../problem.ts";
import type { ProblemCode } from "../problem-codes.ts";
import { type AnyReader, enter, isRecord, type Reader, type Reading, refuse, refuseType, startReading } from "./reading.ts";
import { enumReader, mapKeyReader, scalarReader } from "./scalar-readers.ts";
import { anyReader, readJsonObject, wellKnownReader } from "./well-known-readers.ts";

/** How strictly to read. */
export interface ReadOptions {
  readonly report: Report;
  /** Where the value stands in its document. */
  readonly path: FieldPath;
  /** Code for fields the schema does not have; "ignore" lets them pass. Default: an error. */
  readonly unknownField?: ProblemCode | "ignore";
  /** Where messages inside google.protobuf.Any are found, or who reads them; "unread" leaves them out. Default: none are taken, for no Istio kind has them. */
  readonly anyContent?: Registry | AnyReader | "unread";
}

/**
 * Reads a JSON-shaped value into a message, by the rules Istio reads its API with (Go's jsonpb, strict): Go durations, numbers that may be
 * written as texts, null as absent, enums by name or number, camelCase or proto field names; an unknown field or a wrong type is reported with its path.
 * Never throws; what was refused stays unset. protobuf-es' own fromJson knows neither these forms nor paths, and stops at the first fault.
 */
export function readMessage<D extends DescMessage>(schema: D, json: unknown, options: ReadOptions): MessageShape<D> {
  const reading = startReading({
    report: options.report,
    path: options.path,
    unknownField: options.unknownField === "ignore" ? undefined : (options.unknownField ?? "schema.unknown-field"),
    anyContent: options.anyContent ?? "refuse",
  });
  const reader = messageReader(schema);
  const message = json === undefined || json === null ? undefined : reader(json, reading);
  return (message ?? create(schema)) as MessageShape<D>;
}

/** A message while it is being filled: protobuf-es messages are plain objects with one property per field or oneof. */
type Draft = Record<string, unknown>;

/** How one field is read and where its value goes. */
interface FieldPlan {
  readonly jsonName: string;
  readonly property: string;
  /** Name of the oneof the field belongs to. */
  readonly oneof: string | undefined;
  /** Whether null is a value (google.protobuf.Value) instead of absence. */
  readonly takesNull: boolean;
  readonly read: Reader;
}

const readers = new WeakMap<DescMessage, Reader>();

/** The reader of a message: made once per schema, with its fields in a table by both their names. */
function messageReader(desc: DescMessage): Reader {
  const known = readers.get(desc);
  if (known !== undefined) return known;
  const reader = wellKnownReader(desc) ?? (isWrapperDesc(desc) ? wrapperReader(desc) : recordReader(desc));
  readers.set(desc, reader);
  return reader;
}

function recordReader(desc: DescMessage): Reader {
  // Filled on first use: messages may contain themselves.
  let plans: ReadonlyMap<string, FieldPlan> | undefined;
  return (json, reading) => {
    if (!isRecord(json)) return refuseType(reading, json, "an object");
    const keys = Object.keys(json);
    if (!enter(reading, keys.length)) return undefined;
    plans ??= fieldPlans(desc);
    const draft = create(desc) as unknown as Draft;
    for (const key of keys) {
      const plan = plans.get(key);
      reading.path.push(key);
      if (plan === undefined) refuseUnknown(key, desc, reading);
      else if (json[key] !== null || plan.takesNull) {
        if (key !== plan.jsonName && Object.hasOwn(json, plan.jsonName))
          refuse(reading, "field.conflict", `is also given as ${plan.jsonName}`);
        const other = setField(draft, plan, plan.read(json[key], reading));
        if (other !== undefined) refuse(reading, "field.conflict", `cannot be set together with ${other}`);
      }
      reading.path.pop();
    }
    return draft;
  };
}

function refuseUnknown(key: string, desc: DescMessage, reading: Reading): void {
  if (reading.unknownField !== undefined) refuse(reading, reading.unknownField, `${desc.name} has no field ${quote(key)}`);
}

/** Sets a field, unless another one of its oneof is set already: then it says which. */
function setField(draft: Draft, plan: FieldPlan, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (plan.oneof === undefined) {
    draft[plan.property] = value;
    return undefined;
  }
  const other = (draft[plan.oneof] as { case: string | undefined }).case;
  if (other !== undefined && other !== plan.property) return other;
  draft[plan.oneof] = { case: plan.property, value };
  return undefined;
}

function fieldPlans(desc: DescMessage): ReadonlyMap<string, FieldPlan> {
  const plans = new Map<string, FieldPlan>();
  for (const field of desc.fields) {
    const plan: FieldPlan = {
      jsonName: field.jsonName,
      property: field.localName,
      oneof: field.oneof?.localName,
      takesNull: field.fieldKind === "message" && field.message.typeName === "google.protobuf.Value",
      read: fieldReader(field),
    };
    plans.set(field.jsonName, plan);
    plans.set(field.name, plan);
  }
  return plans;
}

function fieldReader(field: DescField): Reader {
  switch (field.fieldKind) {
    case "scalar":
      return scalarReader(field.scalar);
    case "enum":
      return enumReader(field.enum);
    case "message":
      if (isWrapperDesc(field.message) && field.oneof === undefined) return scalarOf(field.message);
      return contentReader(field, field.message);
    case "list":
      return listReader(itemReader(field));
    case "map":
      return mapReader(mapKeyReader(field.mapKey), itemReader(field));
  }
}

function itemReader(field: DescField & { fieldKind: "list" | "map" }): Reader {
  if (field.message !== undefined) return contentReader(field, field.message);
  return field.enum === undefined ? scalarReader(field.scalar) : enumReader(field.enum);
}

/** The reader of messages in a field: an object stands for itself in a Struct, and what an Any may hold depends on the field. */
function contentReader(field: DescField, message: DescMessage): Reader {
  if (message.typeName === "google.protobuf.Struct") return readJsonObject;
  return message.typeName === "google.protobuf.Any" ? anyReader(field, message) : messageReader(message);
}

/** The scalar a wrapper message (BoolValue, UInt32Value …) carries. */
function scalarOf(desc: DescMessage): Reader {
  const field = desc.fields[0];
  return field?.fieldKind === "scalar" ? scalarReader(field.scalar) : recordReader(desc);
}

function wrapperReader(desc: DescMessage): Reader {
  const read = scalarOf(desc);
  return (json, reading) => {
    const value = read(json, reading);
    return value === undefined ? undefined : Object.assign(create(desc), { value });
  };
}

function listReader(read: Reader): Reader {
  return (json, reading) => {
    if (!Array.isArray(json)) return refuseType(reading, json, "a list");
    if (!enter(reading, json.length)) return undefined;
    // Not by `push`, for which V8 takes room for 17 items: most lists have one.
    const list = json.map((one: unknown, index) => {
      reading.path.push(index);
      const item = read(one, reading);
      reading.path.pop();
      return item;
    });
    return list.includes(undefined) ? list.filter((item) => item !== undefined) : list;
  };
}

function mapReader(readKey: Reader, read: Reader): Reader {
  return (json, reading) => {
    if (!isRecord(json)) return refuseType(reading, json, "an object");
    const names = Object.keys(json);
    if (!enter(reading, names.length)) return undefined;
    const map: Draft = {};
    for (const name of names) {
      reading.path.push(name);
      const key = name === "__proto__" ? refuse(reading, "field.invalid", "is not allowed as a key") : readKey(name, reading);
      const value = key === undefined ? undefined : read(json[name], reading);
      reading.path.pop();
      if (value !== undefined) map[String(key)] = value;
    }
    return map;
  };
}
