import { invariant } from "../base/errors.ts";
import { explicitTag, implicitTag, TAG } from "./der-reader.ts";

/** One value: tag, length, content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const part of content) length += part.length;
  const size = length < 0x80 ? 0 : length < 0x1_00 ? 1 : length < 0x1_00_00 ? 2 : length < 0x1_00_00_00 ? 3 : 4;
  const whole = Buffer.allocUnsafe(2 + size + length);
  whole[0] = tag;
  whole[1] = size === 0 ? length : 0x80 | size;
  if (size > 0) whole.writeUIntBE(length, 2, size);
  let at = 2 + size;
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

const ZERO = Uint8Array.of(0);

/** `unused` counts the bits at the end of the last byte that do not belong to the string. */
export const bitString = (bytes: Uint8Array, unused = 0): Buffer => der(TAG.BIT_STRING, unused === 0 ? ZERO : Uint8Array.of(unused), bytes);

/** A non-negative number given as big-endian bytes, written the shortest way. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const digits = bytes.subarray(start);
  const first = digits[0] ?? 0;
  return digits.length === 0 || first >= 0x80 ? der(TAG.INTEGER, ZERO, digits) : der(TAG.INTEGER, digits);
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

/** Moments that were written lately, by their second: all certificates of a second begin and end in the same ones. */
const writtenTimes = new Map<number, Buffer>();
const MOST_TIMES = 64;

/** A moment as X.509 wants it: UTCTime until 2049, GeneralizedTime after (RFC 5280 4.1.2.5). Whole seconds. */
export function time(ms: number): Buffer {
  const second = Math.floor(ms / 1_000);
  const known = writtenTimes.get(second);
  if (known !== undefined) return known;
  const text = new Date(second * 1_000).toISOString();
  invariant(text.length === 24, "a moment is between the years 0 and 9999");
  const digits = `${text.slice(0, 4)}${text.slice(5, 7)}${text.slice(8, 10)}${text.slice(11, 13)}${text.slice(14, 16)}${text.slice(17, 19)}Z`;
  const made = text < "2050" ? der(TAG.UTC_TIME, Buffer.from(digits.slice(2))) : der(TAG.GENERALIZED_TIME, Buffer.from(digits));
  if (writtenTimes.size >= MOST_TIMES) writtenTimes.clear();
  writtenTimes.set(second, made);
  return made;
}

function arcBytes(arc: number): Uint8Array {
  const bytes = [arc % 128];
  for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(0x80 | (rest % 128));
  return Uint8Array.from(bytes);
}
