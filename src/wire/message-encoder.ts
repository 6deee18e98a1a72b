import { type DescField, type DescMessage, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc, FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { type ScalarWriter, scalarWriter } from "./scalar-writer.ts";
import { orderedKeys, writeStruct } from "./struct-writer.ts";
import { TailBuffer } from "./tail-buffer.ts";

/** Writes a value, with the tags of its field and all, or nothing where it says nothing. */
type FieldWriter = (out: TailBuffer, value: never) => void;

interface FieldPlan {
  readonly name: string;
  /** Fields stand in the order of their numbers. */
  readonly number: number;
  readonly write: FieldWriter;
}

/** What a property of a message stands for: a field, or one of several. */
interface Property {
  readonly field: FieldPlan | undefined;
  readonly cases: ReadonlyMap<string, FieldPlan> | undefined;
}

type Plan = ReadonlyMap<string, Property>;

const LENGTH_DELIMITED = 2;
const STRUCT = "google.protobuf.Struct";
const VALUE = "google.protobuf.Value";
/** Under which a message carries its bytes, where they are known already. */
const BYTES: unique symbol = Symbol("bytes");

/**
 * Writes a message, or what one is made from, as the library writes the message, but the entries of maps in order: equal content gives equal bytes.
 * Only properties that are there are looked at, so a record of the few fields that are set costs less than a message, which has all of them, and
 * much less than to make one first. Messages of proto3 only: others have rules of their own of what is set.
 */
export function messageBytes(schema: DescMessage, message: object): Uint8Array {
  out.clear();
  top = 0;
  try {
    writeMessage(planOf(schema), message);
  } catch (error) {
    throw new Error(
      `cannot encode ${schema.typeName}: ${path.splice(0).reverse().join(".")}: ${error instanceof Error ? error.message : error}`,
    );
  }
  return out.toBytes();
}

/** Has the bytes of a message copied wherever it stands in another. It is frozen, since they would not follow a change. */
export function withBytes<M extends object>(message: M, bytes: Uint8Array): M {
  return Object.freeze(Object.defineProperty(message, BYTES, { value: bytes }));
}

const out = new TailBuffer();
/** The fields of the messages that are being written, from the outermost in. */
const fields: (FieldPlan | undefined)[] = [];
const values: unknown[] = [];
/** Where the next is put. */
let top = 0;
/** Where something could not be written, from the inside out. */
const path: string[] = [];

function writeMessage(plan: Plan, message: object): void {
  const known = (message as { readonly [BYTES]?: Uint8Array })[BYTES];
  if (known !== undefined) {
    out.raw(known);
    return;
  }
  const base = top;
  for (const name in message) {
    const property = plan.get(name);
    if (property !== undefined) note(property, (message as Readonly<Record<string, unknown>>)[name], base);
  }
  let at = top - 1;
  try {
    for (; at >= base; at--) {
      fields[at]?.write(out, values[at] as never);
      values[at] = undefined;
    }
  } catch (error) {
    path.push(fields[at]?.name ?? "");
    throw error;
  }
  top = base;
}

/** Puts a field in its place among those of its message that were found before. */
function note({ field: only, cases }: Property, given: unknown, base: number): void {
  if (given === undefined || given === null) return;
  let field = only;
  let value: unknown = given;
  if (field === undefined) {
    const choice = given as { readonly case?: string; readonly value?: unknown };
    field = choice.case === undefined ? undefined : cases?.get(choice.case);
    if (field === undefined) return;
    value = choice.value;
  }
  let at = top++;
  for (; at > base; at--) {
    const before = fields[at - 1];
    if (before === undefined || before.number < field.number) break;
    fields[at] = before;
    values[at] = values[at - 1];
  }
  fields[at] = field;
  values[at] = value;
}

const plans = new WeakMap<DescMessage, Plan>();

function planOf(schema: DescMessage): Plan {
  let plan = plans.get(schema);
  if (plan === undefined) {
    plan = new Map([
      ...schema.members.map((member): [string, Property] => [
        member.localName,
        member.kind === "oneof"
          ? { field: undefined, cases: new Map(member.fields.map((field) => [field.localName, planField(field)])) }
          : { field: planField(member), cases: undefined },
      ]),
      ["$unknown", { field: UNKNOWN, cases: undefined }],
    ]);
    plans.set(schema, plan);
  }
  return plan;
}

/** Fields that the schema does not know go last, as they came. */
const UNKNOWN: FieldPlan = {
  name: "$unknown",
  number: Number.POSITIVE_INFINITY,
  write(to, unknown: readonly { readonly no: number; readonly wireType: number; readonly data: Uint8Array }[]) {
    for (const { no, wireType, data } of unknown.toReversed()) {
      to.raw(data);
      to.varint(tagOf(no, wireType));
    }
  },
};

const planField = (field: DescField): FieldPlan => ({ name: field.name, number: field.number, write: fieldWriter(field) });

const tagOf = (number: number, wireType: number): number => ((number << 3) | wireType) >>> 0;

function fieldWriter(field: DescField): FieldWriter {
  const tag = tagOf(field.number, LENGTH_DELIMITED);
  switch (field.fieldKind) {
    case "message":
      return field.oneof === undefined && isWrapperDesc(field.message) ? wrapped(field.message, tag) : nested(tag, field);
    case "list":
      return field.listKind === "message" ? each(nested(tag, field)) : scalarList(field);
    case "map":
      return mapped(field, tag);
    default:
      return singular(field);
  }
}

type FieldOf<K extends DescField["fieldKind"]> = Extract<DescField, { readonly fieldKind: K }>;

const scalarOf = ({ scalar }: { readonly scalar?: ScalarType | undefined }): ScalarWriter => scalarWriter(scalar ?? ScalarType.INT32);

function singular(field: FieldOf<"scalar" | "enum">): FieldWriter {
  const { wireType, write, isZero } = scalarOf(field);
  const tag = tagOf(field.number, wireType);
  const always = field.presence !== Presence.IMPLICIT;
  return (to, value) => {
    if (!always && isZero(value)) return;
    write(to, value);
    to.varint(tag);
  };
}

/** A scalar that may be absent is a message of its own on the wire, and only there. */
function wrapped({ fields: [inner] }: DescMessage, tag: number): FieldWriter {
  return enclosed(tag, inner?.fieldKind === "scalar" ? singular(inner) : () => {});
}

/** Writes a message inside another. A `Struct` is given as the JSON it stands for, except inside a `Value`. */
function nested(tag: number, { message, parent }: { readonly message: DescMessage; readonly parent: DescMessage }): FieldWriter {
  if (message.typeName === STRUCT && parent.typeName !== VALUE) {
    return (to, json: JsonObject) => {
      const before = to.size;
      writeStruct(to, json);
      to.open(tag, before);
    };
  }
  let plan: Plan | undefined;
  return (to, value: object) => {
    plan ??= planOf(message);
    const before = to.size;
    writeMessage(plan, value);
    to.open(tag, before);
  };
}

/** Puts tag and length before what is written. */
const enclosed =
  (tag: number, write: FieldWriter): FieldWriter =>
  (to, value) => {
    const before = to.size;
    write(to, value);
    to.open(tag, before);
  };

const each =
  (write: FieldWriter): FieldWriter =>
  (to, list: readonly unknown[]) => {
    for (let i = list.length - 1; i >= 0; i--) write(to, list[i] as never);
  };

function scalarList(field: FieldOf<"list">): FieldWriter {
  const { wireType, write } = scalarOf(field);
  if (!field.packed) {
    const tag = tagOf(field.number, wireType);
    return each((to, value) => {
      write(to, value);
      to.varint(tag);
    });
  }
  const packed = enclosed(tagOf(field.number, LENGTH_DELIMITED), each(write));
  return (to, list: readonly unknown[]) => {
    if (list.length > 0) packed(to, list as never);
  };
}

function mapped(field: FieldOf<"map">, tag: number): FieldWriter {
  const { wireType, write } = scalarWriter(field.mapKey);
  const keyTag = tagOf(1, wireType);
  const keyOf = mapKey(field.mapKey);
  const writeValue = mapValue(field);
  return (to, map: Readonly<Record<string, unknown>>) => {
    const keys = orderedKeys(map);
    for (let i = keys.length - 1; i >= 0; i--) {
      const key = keys[i] ?? "";
      const before = to.size;
      writeValue(to, map[key] as never);
      write(to, keyOf(key) as never);
      to.varint(keyTag);
      to.open(tag, before);
    }
  };
}

function mapValue(field: FieldOf<"map">): FieldWriter {
  if (field.mapKind === "message") return nested(tagOf(2, LENGTH_DELIMITED), field);
  const { wireType, write } = scalarOf(field);
  return (to, value) => {
    write(to, value);
    to.varint(tagOf(2, wireType));
  };
}

/** Keys of objects are texts, whatever those of the map are. */
function mapKey(type: ScalarType): (key: string) => unknown {
  switch (type) {
    case ScalarType.STRING:
      return (key) => key;
    case ScalarType.BOOL:
      return (key) => key === "true";
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return BigInt;
    default:
      return Number;
  }
}
