/** Longer texts are left to the platform; for shorter ones the call costs more than it saves. */
const SHORT_TEXT = 96;
const FIRST_SIZE = 16 * 1024;

const encoder = new TextEncoder();

/**
 * Bytes of protobuf written from the end to the start: the content of a message stands there before its length is written, so nothing is measured
 * first and nothing moves. One is used for message after message. Numbers are taken as they are; who calls has looked whether they fit.
 */
export class TailBuffer {
  #bytes = new Uint8Array(FIRST_SIZE);
  #view = new DataView(this.#bytes.buffer);
  /** Where the bytes that are written begin. */
  #at = FIRST_SIZE;
  #end = FIRST_SIZE;

  /** Bytes written so far. */
  get size(): number {
    return this.#end - this.#at;
  }

  clear(): void {
    this.#at = this.#end;
  }

  /** A copy of what is written. */
  toBytes(): Uint8Array {
    return this.#bytes.slice(this.#at);
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#at -= bytes.length;
    this.#bytes.set(bytes, this.#at);
  }

  byte(value: number): void {
    if (this.#at === 0) this.#reserve(1);
    this.#at -= 1;
    this.#bytes[this.#at] = value;
  }

  /** A whole number from 0 to 2³² - 1. */
  varint(value: number): void {
    if (value < 0x80) {
      this.byte(value);
      return;
    }
    const size = value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;
    this.#reserve(size);
    this.#at -= size;
    let at = this.#at;
    let rest = value;
    for (; rest > 0x7f; rest >>>= 7) this.#bytes[at++] = (rest & 0x7f) | 0x80;
    this.#bytes[at] = rest;
  }

  /** A whole number from 0 to 2⁶⁴ - 1. */
  varint64(value: bigint): void {
    const bytes: number[] = [];
    let rest = value;
    for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    bytes.push(Number(rest));
    this.raw(Uint8Array.from(bytes));
  }

  /** Tag and length of what was written since there were `before` bytes. */
  open(tag: number, before: number): void {
    this.varint(this.#end - this.#at - before);
    this.varint(tag);
  }

  fixed32(value: number): void {
    this.#reserve(4);
    this.#at -= 4;
    this.#view.setUint32(this.#at, value >>> 0, true);
  }

  fixed64(value: bigint): void {
    this.#reserve(8);
    this.#at -= 8;
    this.#view.setBigUint64(this.#at, value, true);
  }

  float(value: number): void {
    this.#reserve(4);
    this.#at -= 4;
    this.#view.setFloat32(this.#at, value, true);
  }

  double(value: number): void {
    this.#reserve(8);
    this.#at -= 8;
    this.#view.setFloat64(this.#at, value, true);
  }

  /** A text with its length before it. */
  text(value: string): void {
    const { length } = value;
    this.#reserve(length);
    const start = this.#at - length;
    if (length > SHORT_TEXT ? this.#copiesAscii(value, start) : this.#writesAscii(value, start)) {
      this.#at = start;
      this.varint(length);
      return;
    }
    const bytes = encoder.encode(value);
    this.raw(bytes);
    this.varint(bytes.length);
  }

  /** Whether a text has one byte for each of its letters, and then stands at `start`. */
  #writesAscii(value: string, start: number): boolean {
    const bytes = this.#bytes;
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code > 0x7f) return false;
      bytes[start + i] = code;
    }
    return true;
  }

  #copiesAscii(value: string, start: number): boolean {
    const { length } = value;
    const { read, written } = encoder.encodeInto(value, this.#bytes.subarray(start, start + length));
    return read === length && written === length;
  }

  #reserve(size: number): void {
    if (this.#at >= size) return;
    const used = this.size;
    let end = this.#end * 2;
    while (end - used < size) end *= 2;
    const larger = new Uint8Array(end);
    larger.set(this.#bytes.subarray(this.#at), end - used);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
    this.#at = end - used;
    this.#end = end;
  }
}
