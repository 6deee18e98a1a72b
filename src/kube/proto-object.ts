import type { ListTexts } from "./list-texts.ts";
import type { ProtoField, ProtoFields } from "./proto-fields.ts";

/** Kinds of values on the wire. */
const [VARINT, BITS_64, BYTES, BITS_32] = [0, 1, 2, 5];

type Json = Record<string, unknown>;

/** Walks bytes of protobuf. Throws where they end inside a value, or are none. */
export class ProtoBytes {
  readonly bytes: Buffer;
  readonly #texts: ListTexts;
  at = 0;

  constructor(bytes: Buffer, texts: ListTexts) {
    this.bytes = bytes;
    this.#texts = texts;
  }

  /** A number below 2^32, as tags and lengths are. */
  short(): number {
    const value = this.int();
    if (value < 0 || value > 0xffff_ffff) throw new RangeError("a length is no length");
    return value;
  }

  int(): number {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) throw new RangeError("it ends inside a number");
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) [low, high] = [low | (bits << 28), bits >>> 4];
      else high |= bits << (shift - 32);
      if (byte < 0x80) return (high | 0) * 0x1_0000_0000 + (low >>> 0);
    }
    throw new RangeError("a number does not end");
  }

  /** Where the value with the length that comes next ends. */
  end(limit: number): number {
    const length = this.short();
    if (this.at + length > limit) throw new RangeError("a value goes beyond the end of what holds it");
    return this.at + length;
  }

  text(end: number): string {
    const text = this.#texts.read(this.bytes, this.at, end);
    this.at = end;
    return text;
  }

  time(seconds: number): string {
    return this.#texts.time(seconds);
  }

  /** Steps over the value after a tag. */
  skip(tag: number, limit: number): void {
    const wire = tag & 7;
    if (wire === VARINT) this.int();
    else if (wire === BYTES) this.at = this.end(limit);
    else if (wire === BITS_64) this.at += 8;
    else if (wire === BITS_32) this.at += 4;
    else throw new RangeError(`no value is of wire type ${wire}`);
    if (this.at > limit) throw new RangeError("a value goes beyond the end of what holds it");
  }
}

/** Reads a message that ends at `limit` into what its JSON would say, as far as fields are named. */
export function readProtoObject(from: ProtoBytes, limit: number, fields: ProtoFields): Json {
  const object: Json = {};
  while (from.at < limit) {
    const tag = from.short();
    const field = fields[tag >>> 3];
    if (field === undefined) from.skip(tag, limit);
    else readField(object, field, { from, tag, limit });
  }
  return object;
}

interface Place {
  readonly from: ProtoBytes;
  readonly tag: number;
  readonly limit: number;
}

function readField(object: Json, { name, kind, repeated, zero }: ProtoField, { from, tag, limit }: Place): void {
  const isNumber = kind === "int" || kind === "bool";
  if ((tag & 7) !== (isNumber ? VARINT : BYTES)) throw new RangeError(`${name} is of another type`);
  if (isNumber) {
    const value = from.int();
    if (value !== 0 || zero) object[name] = kind === "bool" ? value !== 0 : value;
    return;
  }
  const end = from.end(limit);
  if (kind === "map") {
    object[name] ??= {};
    readEntry(object[name] as Json, from, end);
    return;
  }
  const value = readValue(kind, from, end);
  if (repeated) {
    object[name] ??= [];
    (object[name] as unknown[]).push(value);
  } else if (value !== "" || zero) object[name] = value;
}

function readValue(kind: Exclude<ProtoField["kind"], "int" | "bool" | "map">, from: ProtoBytes, end: number): unknown {
  if (kind === "string") return from.text(end);
  if (kind === "time") return timeOf(from, end);
  return kind === "intOrString" ? numberOrText(from, end) : readProtoObject(from, end, kind);
}

function readEntry(entries: Json, from: ProtoBytes, limit: number): void {
  let [key, value] = ["", ""];
  while (from.at < limit) {
    const tag = from.short();
    if (tag === KEY) key = from.text(from.end(limit));
    else if (tag === VALUE) value = from.text(from.end(limit));
    else from.skip(tag, limit);
  }
  // Assigned, this one would become the prototype.
  if (key === "__proto__") Object.defineProperty(entries, key, { value, configurable: true, enumerable: true, writable: true });
  else entries[key] = value;
}

const [KEY, VALUE] = [(1 << 3) | BYTES, (2 << 3) | BYTES];

/** A number, or a text where its type says so. */
function numberOrText(from: ProtoBytes, limit: number): number | string {
  let [isText, number, text] = [false, 0, ""];
  while (from.at < limit) {
    const tag = from.short();
    if (tag === TYPE) isText = from.int() === 1;
    else if (tag === NUMBER) number = from.int();
    else if (tag === TEXT) text = from.text(from.end(limit));
    else from.skip(tag, limit);
  }
  return isText ? text : number;
}

const [TYPE, NUMBER, TEXT] = [(1 << 3) | VARINT, (2 << 3) | VARINT, (3 << 3) | BYTES];

/** One that was never set is null. */
function timeOf(from: ProtoBytes, limit: number): string | null {
  let seconds: number | undefined;
  while (from.at < limit) {
    const tag = from.short();
    if (tag === SECONDS) seconds = from.int();
    else from.skip(tag, limit);
  }
  return seconds === undefined ? null : from.time(seconds);
}

const SECONDS = (1 << 3) | VARINT;
