import { contentHash } from "../base/hash.ts";

/**
 * A hash that is equal for equal JSON content, whatever the order of keys, and differs for different content. Absent and undefined are the same; the
 * input must be free of cycles. A start reads thousands of objects, so what is hashed is written into bytes that are kept: it leaves nothing to collect.
 */
export function contentDigest(value: unknown): string {
  size = 0;
  write(value);
  const digest = contentHash(bytes.subarray(0, size));
  if (bytes.length > MOST_KEPT) bytes = new Uint8Array(LEAST_KEPT);
  return digest;
}

/** Bytes to write into. What a huge object made of them is let go of. */
const LEAST_KEPT = 4096;
const MOST_KEPT = 64 * 1024;
let bytes = new Uint8Array(LEAST_KEPT);
let size = 0;

const [TEXT, LIST, LIST_END, OBJECT, OBJECT_END, OTHER, NULL, ABSENT] = [0, 1, 2, 3, 4, 5, 6, 7];

/** Every value begins with what it is, and says how long it is or where it ends: no two write the same. */
function write(value: unknown): void {
  if (typeof value === "string") writeText(TEXT, value);
  else if (value === undefined) put(ABSENT);
  else if (value === null) put(NULL);
  else if (Array.isArray(value)) writeList(value);
  else if (typeof value === "object") writeObject(value as Readonly<Record<string, unknown>>);
  else writeText(OTHER, String(value));
}

function writeList(list: readonly unknown[]): void {
  put(LIST);
  for (let index = 0; index < list.length; index++) write(list[index]);
  put(LIST_END);
}

function writeObject(record: Readonly<Record<string, unknown>>): void {
  put(OBJECT);
  for (const key of sorted(Object.keys(record))) {
    const member = record[key];
    if (member === undefined) continue;
    writeText(TEXT, key);
    write(member);
  }
  put(OBJECT_END);
}

function put(byte: number): void {
  if (size === bytes.length) grow(1);
  bytes[size] = byte;
  size += 1;
}

/** Length, then characters: one byte for those below 128, which nearly all are, else three. */
function writeText(type: number, text: string): void {
  const { length } = text;
  if (size + 5 + 3 * length > bytes.length) grow(5 + 3 * length);
  bytes[size] = type;
  for (let shift = 0; shift < 4; shift++) bytes[size + 1 + shift] = length >>> (8 * shift);
  let at = size + 5;
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x80) bytes[at] = code;
    else {
      bytes[at] = 0x80;
      bytes[at + 1] = code & 0xff;
      bytes[at + 2] = code >>> 8;
      at += 2;
    }
    at += 1;
  }
  size = at;
}

function grow(by: number): void {
  const larger = new Uint8Array(Math.max(2 * bytes.length, size + by));
  larger.set(bytes.subarray(0, size));
  bytes = larger;
}

/** In code-unit order, in place. Objects have few keys, mostly in order already; `sort` would copy them twice. */
function sorted(keys: string[]): readonly string[] {
  if (keys.length > MOST_INSERTED) return keys.sort();
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index] ?? "";
    let at = index;
    for (let before = keys[at - 1]; before !== undefined && before > key; before = keys[at - 1]) {
      keys[at] = before;
      at -= 1;
    }
    keys[at] = key;
  }
  return keys;
}

/** More keys than this are sorted sooner than inserted. */
const MOST_INSERTED = 16;
