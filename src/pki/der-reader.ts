/** Bytes are not the DER that was expected. What a stranger sent is named by place, never quoted. */
export class DerError extends Error {
  override readonly name = "DerError";
}

/** One value: its tag, its content, and all of its bytes as they were, because signatures cover those. */
export interface DerElement {
  readonly tag: number;
  readonly content: Buffer;
  readonly raw: Buffer;
}

/** Tags of the universal class that X.509 uses. */
export const TAG = {
  BOOLEAN: 0x01,
  INTEGER: 0x02,
  BIT_STRING: 0x03,
  OCTET_STRING: 0x04,
  NULL: 0x05,
  OID: 0x06,
  UTF8: 0x0c,
  SEQUENCE: 0x30,
  SET: 0x31,
  UTC_TIME: 0x17,
  GENERALIZED_TIME: 0x18,
} as const;

/** Context tag `[n]` around other values. */
export const explicitTag = (n: number): number => 0xa0 | n;
/** Context tag `[n]` in place of a primitive value's own. */
export const implicitTag = (n: number): number => 0x80 | n;

const LONGEST_LENGTH = 4;
const LONGEST_OID = 64;

/**
 * Reads values one after another. Takes strict DER only (definite, shortest lengths; tags of one byte) and never goes deeper by itself, so hostile
 * bytes cost no stack and no memory: everything it gives is a view of what came in. Throws `DerError` and nothing else.
 */
export class DerReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get done(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** The next value, which must have this tag. */
  take(tag: number): DerElement {
    const element = this.any();
    if (element.tag !== tag) throw new DerError(`expected tag ${hex(tag)}, found ${hex(element.tag)}`);
    return element;
  }

  /** The next value if it has this tag; otherwise undefined, and it stays. */
  takeIf(tag: number): DerElement | undefined {
    return this.#bytes[this.#at] === tag ? this.any() : undefined;
  }

  /** The next value, whatever it is. */
  any(): DerElement {
    const start = this.#at;
    const tag = this.#byte();
    if ((tag & 0x1f) === 0x1f) throw new DerError("tags of several bytes are not taken");
    const length = this.#length();
    const from = this.#at;
    if (length > this.#bytes.length - from) throw new DerError("a value is longer than what contains it");
    this.#at = from + length;
    return new Element(tag, this.#bytes, { start, from, end: this.#at });
  }

  /** States that nothing is left. */
  end(): void {
    if (!this.done) throw new DerError("there are bytes after the last value");
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new DerError("a value ends too early");
    this.#at += 1;
    return byte;
  }

  #length(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    const size = first & 0x7f;
    if (size === 0 || size > LONGEST_LENGTH) throw new DerError("lengths must be definite and of at most four bytes");
    let length = 0;
    for (let i = 0; i < size; i++) length = length * 256 + this.#byte();
    if (length < 0x80 || length < 256 ** (size - 1)) throw new DerError("a length is not written the shortest way");
    return length;
  }
}

/** A value by its place. Its views are made when they are asked for: most values are only stepped over. */
class Element implements DerElement {
  readonly tag: number;
  readonly #bytes: Buffer;
  readonly #place: { readonly start: number; readonly from: number; readonly end: number };

  constructor(tag: number, bytes: Buffer, place: { readonly start: number; readonly from: number; readonly end: number }) {
    this.tag = tag;
    this.#bytes = bytes;
    this.#place = place;
  }

  get content(): Buffer {
    return this.#bytes.subarray(this.#place.from, this.#place.end);
  }

  get raw(): Buffer {
    return this.#bytes.subarray(this.#place.start, this.#place.end);
  }
}

/** The values inside a constructed one. */
export const inside = (element: DerElement): DerReader => new DerReader(element.content);

/** The one value of this tag that `bytes` are. */
export function readWhole(bytes: Uint8Array, tag: number): DerElement {
  const reader = new DerReader(bytes);
  const element = reader.take(tag);
  reader.end();
  return element;
}

/** An object identifier in dotted form. */
export function readOid({ content }: DerElement): string {
  const last = content.at(-1);
  if (last === undefined || last >= 0x80 || content.length > LONGEST_OID) throw new DerError("an object identifier is malformed");
  const arcs: number[] = [];
  let arc = 0;
  for (const byte of content) {
    if (arc === 0 && byte === 0x80) throw new DerError("an object identifier is not written the shortest way");
    arc = arc * 128 + (byte & 0x7f);
    if (arc > Number.MAX_SAFE_INTEGER / 128) throw new DerError("an object identifier is too large");
    if (byte >= 0x80) continue;
    arcs.push(arc);
    arc = 0;
  }
  const [first = 0, ...rest] = arcs;
  const root = Math.min(2, Math.floor(first / 40));
  return [root, first - root * 40, ...rest].join(".");
}

/** The bytes of a bit string that has no odd bits at its end, as signatures and keys have none. */
export function readBits({ content }: DerElement): Buffer {
  if (content[0] !== 0) throw new DerError("a bit string of whole bytes was expected");
  return content.subarray(1);
}

/** A boolean; DER knows two spellings only. */
export function readBoolean({ content }: DerElement): boolean {
  if (content.length !== 1 || (content[0] !== 0 && content[0] !== 0xff)) throw new DerError("a boolean is malformed");
  return content[0] === 0xff;
}

const hex = (tag: number): string => `0x${tag.toString(16).padStart(2, "0")}`;
