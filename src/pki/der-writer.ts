import { invariant } from "../base/errors.ts";
import { explicitTag, implicitTag, TAG } from "./der-reader.ts";

/** One value: tag, length, content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const part of content) length += part.length;
  const size = lengthBytes(length);
  const whole = Buffer.allocUnsafe(1 + size.length + length);
  whole[0] = tag;
  whole.set(size, 1);
  let at = 1 + size.length;
  for (const part of content) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export const sequence = (...values: readonly Uint8Array[]): Buffer => der(TAG.SEQUENCE, ...values);
export const set = (...values: readonly Uint8Array[]): Buffer => der(TAG.SET, ...values);
export const octetString = (bytes: Uint8Array): Buffer => der(TAG.OCTET_STRING, bytes);
export const utf8 = (text: string): Buffer => der(TAG.UTF8, Buffer.from(text));
export const boolean = (value: boolean): Buffer => der(TAG.BOOLEAN, Uint8Array.of(value ? 0xff : 0));
export const nothing = (): Buffer => der(TAG.NULL);
/** A value inside context tag `[n]`. */
export const explicit = (n: number, ...values: readonly Uint8Array[]): Buffer => der(explicitTag(n), ...values);
/** Primitive content under context tag `[n]`. */
export const implicit = (n: number, content: Uint8Array): Buffer => der(implicitTag(n), content);

/** `unused` counts the bits at the end of the last byte that do not belong to the string. */
export const bitString = (bytes: Uint8Array, unused = 0): Buffer => der(TAG.BIT_STRING, Uint8Array.of(unused), bytes);

/** A non-negative number given as big-endian bytes, written the shortest way. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const digits = bytes.subarray(start);
  const first = digits[0] ?? 0;
  return der(TAG.INTEGER, ...(digits.length === 0 || first >= 0x80 ? [Uint8Array.of(0)] : []), digits);
}

const writtenOids = new Map<string, Buffer>();

/** An object identifier from its dotted form. Those that we write are few and always the same, so each is made once. */
export function oid(dotted: string): Buffer {
  const known = writtenOids.get(dotted);
  if (known !== undefined) return known;
  const [root = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const made = der(TAG.OID, Buffer.concat([root * 40 + second, ...rest].map(arcBytes)));
  writtenOids.set(dotted, made);
  return made;
}

/** A moment as X.509 wants it: UTCTime until 2049, GeneralizedTime after (RFC 5280 4.1.2.5). Whole seconds. */
export function time(ms: number): Buffer {
  const text = new Date(ms).toISOString();
  invariant(text.length === 24, "a moment is between the years 0 and 9999");
  const digits = `${text.slice(0, 4)}${text.slice(5, 7)}${text.slice(8, 10)}${text.slice(11, 13)}${text.slice(14, 16)}${text.slice(17, 19)}Z`;
  return text < "2050" ? der(TAG.UTC_TIME, Buffer.from(digits.slice(2))) : der(TAG.GENERALIZED_TIME, Buffer.from(digits));
}

function lengthBytes(length: number): Uint8Array {
  if (length < 0x80) return Uint8Array.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Uint8Array.of(0x80 | bytes.length, ...bytes);
}

function arcBytes(arc: number): Uint8Array {
  const bytes = [arc % 128];
  for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(0x80 | (rest % 128));
  return Uint8Array.from(bytes);
}
