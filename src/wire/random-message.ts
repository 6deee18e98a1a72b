import { type DescField, type DescMessage, type JsonObject, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";

/** Gives whole numbers below a bound. */
export type Draw = (below: number) => number;

const TEXTS = ["", "a", "outbound|80||reviews", "ü€😀", "0", "true", "x".repeat(200), "\ud800"];
const LONGS = [0n, 1n, -1n, 127n, 128n, 2n ** 63n - 1n, -(2n ** 63n), 300n];
const UINTS = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_456, 0xffff_ffff];
const INTS = [0, 1, -1, 127, 128, 0x7fff_ffff, -0x8000_0000, 5];
const FLOATS = [0, -0, 0.5, -1.25, Number.NaN, Number.POSITIVE_INFINITY];

/** Test support: what a message of any type may be made from, with every kind of field and value. Keys of maps are in order. */
export function randomMessage(schema: DescMessage, draw: Draw, depth = 3): Record<string, unknown> {
  const init: Record<string, unknown> = {};
  const members = schema.members.length > 6 ? schema.members.filter(() => draw(3) === 0) : schema.members;
  for (const member of draw(2) === 0 ? members : members.toReversed()) {
    if (member.kind === "field") {
      const value = fieldValue(member, draw, depth);
      if (value !== undefined) init[member.localName] = value;
      continue;
    }
    const field = pick(member.fields, draw);
    // In a oneof a wrapped scalar is a message as any other.
    const value = field.fieldKind === "message" ? messageValue(field, draw, depth) : fieldValue(field, draw, depth);
    if (value !== undefined && draw(4) > 0) init[member.localName] = { case: field.localName, value };
  }
  return init;
}

function pick<T>(from: readonly T[], draw: Draw): T {
  const item = from[draw(from.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

function fieldValue(field: DescField, draw: Draw, depth: number): unknown {
  switch (field.fieldKind) {
    case "message":
      if (isWrapperDesc(field.message)) return scalarOf(field.message.fields[0]?.scalar, draw);
      return messageValue(field, draw, depth);
    case "list":
      if (depth === 0 && field.listKind === "message") return [];
      return Array.from({ length: draw(3) }, () =>
        field.listKind === "message" ? messageValue(field, draw, depth) : scalarOf(field.scalar, draw),
      );
    case "map":
      return mapValue(field, draw, depth);
    default:
      return field.fieldKind === "enum" ? pick(field.enum.values, draw).number : scalarOf(field.scalar, draw);
  }
}

function messageValue({ message, parent }: { message: DescMessage; parent: DescMessage }, draw: Draw, depth: number): unknown {
  if (message.typeName === "google.protobuf.Struct" && parent.typeName !== "google.protobuf.Value") return jsonObject(draw, depth);
  return depth === 0 ? undefined : randomMessage(message, draw, depth - 1);
}

function mapValue(field: Extract<DescField, { fieldKind: "map" }>, draw: Draw, depth: number): unknown {
  if (depth === 0 && field.mapKind === "message") return {};
  const entries = mapKeys(field.mapKey).map((key): [string, unknown] => [
    key,
    field.mapKind === "message" ? messageValue(field, draw, depth) : scalarOf(field.scalar, draw),
  ]);
  return Object.fromEntries(entries.filter(() => draw(2) === 0));
}

function mapKeys(type: ScalarType): readonly string[] {
  if (type === ScalarType.BOOL) return ["false", "true"];
  return type === ScalarType.STRING ? ["", "a", "b.c", "ü"] : ["0", "1", "200"];
}

function jsonObject(draw: Draw, depth: number): JsonObject {
  return Object.fromEntries(["", "a", "b"].filter(() => draw(2) === 0).map((key) => [key, jsonValue(draw, depth)]));
}

function jsonValue(draw: Draw, depth: number): JsonValue {
  if (depth > 0 && draw(3) === 0) return draw(2) === 0 ? jsonObject(draw, depth - 1) : [jsonValue(draw, depth - 1), null];
  return pick<JsonValue>([null, true, false, 0, -0, 1.5, "", "text", "ü"], draw);
}

function scalarOf(type: ScalarType | undefined, draw: Draw): unknown {
  switch (type) {
    case ScalarType.STRING:
      return pick(TEXTS, draw);
    case ScalarType.BYTES:
      return new Uint8Array(draw(4));
    case ScalarType.BOOL:
      return draw(2) === 0;
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return pick(FLOATS, draw);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return pick(UINTS, draw);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return BigInt.asUintN(64, pick(LONGS, draw));
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return pick(LONGS, draw);
    default:
      return type === undefined ? 0 : pick(INTS, draw);
  }
}
