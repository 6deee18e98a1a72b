/**
 * Protobuf written by hand, field by field. Programs that pass messages on, or write a few small ones, need no descriptors for that; measured, the
 * runtime that works with descriptors takes 17 MB as soon as it knows one message.
 */

const EMPTY = Buffer.alloc(0);

/** Tag and length of a length-delimited field (wire type 2). */
export function openField(number: number, length: number): Buffer {
  return Buffer.from(varint(length, varint(number * 8 + 2)));
}

/** A text; nothing where it is empty, which is its default. */
export function textField(number: number, text: string): Buffer {
  return text === "" ? EMPTY : bytesField(number, Buffer.from(text, "utf8"));
}

/** Bytes or a message that is encoded already, even an empty one: presence may be what it says. */
export const bytesField = (number: number, bytes: Uint8Array): Buffer => Buffer.concat([openField(number, bytes.length), bytes]);

/** A message of encoded fields; nothing where it would be empty. */
export function messageField(number: number, fields: readonly Uint8Array[]): Buffer {
  const size = fields.reduce((sum, field) => sum + field.length, 0);
  return size === 0 ? EMPTY : Buffer.concat([openField(number, size), ...fields]);
}

/** A whole number that is not negative, an enum or a flag; nothing where it is 0. */
export const numberField = (number: number, value: number): Buffer =>
  value === 0 ? EMPTY : Buffer.from(varint(value, varint(number * 8)));

/** Adds a number to these bytes, seven bits to each. */
function varint(value: number, bytes: number[] = []): number[] {
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return bytes;
}

/** What a `google.protobuf.Struct` can hold. */
export type StructValue = null | boolean | number | string | readonly StructValue[] | { readonly [key: string]: StructValue };

/** The bytes of a `google.protobuf.Struct`, its keys in order so that equal content gives equal bytes. */
export function structBytes(value: { readonly [key: string]: StructValue }): Buffer {
  const entries = Object.keys(value)
    .sort()
    .map((key) => messageField(1, [textField(1, key), bytesField(2, valueBytes(value[key] ?? null))]));
  return Buffer.concat(entries);
}

function valueBytes(value: StructValue): Buffer {
  if (value === null) return Buffer.from([0x08, 0x00]);
  if (typeof value === "boolean") return Buffer.from([0x20, value ? 1 : 0]);
  if (typeof value === "string") return bytesField(3, Buffer.from(value, "utf8"));
  if (typeof value === "number") {
    const bytes = Buffer.alloc(9);
    bytes[0] = 0x11;
    bytes.writeDoubleLE(value, 1);
    return bytes;
  }
  if (isList(value)) return bytesField(6, Buffer.concat(value.map((item) => bytesField(1, valueBytes(item)))));
  return bytesField(5, structBytes(value));
}

const isList = (value: StructValue): value is readonly StructValue[] => Array.isArray(value);
