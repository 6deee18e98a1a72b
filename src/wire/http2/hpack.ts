import { HTTP2_ERROR, Http2Fault } from "./frame.ts";
import { type Header, HeaderTable, headerSize } from "./header-table.ts";
import { decodeHuffman } from "./huffman.ts";

/** How much clients may have us remember; what the protocol begins with. */
const TABLE_BYTES = 4_096;
/** What the headers of one request may come to. A token may have 16 KB, and certificates that are forwarded some more. */
export const MAX_HEADER_LIST_BYTES = 64 * 1024;
const MAX_HEADERS = 128;
/** An integer is cut into groups of seven bits; no length or index that makes sense takes more of them. */
const MAX_INTEGER_SHIFT = 21;

/** Reads the headers that a client sends on one connection (RFC 7541): each block may refer to those before it, so none can be left out. */
export class HeaderDecoder {
  readonly #table = new HeaderTable(TABLE_BYTES);
  #block: Uint8Array = new Uint8Array();
  #at = 0;

  /** Throws `Http2Fault`: after a block that cannot be read, no later one can. */
  decode(block: Uint8Array): readonly Header[] {
    this.#block = block;
    this.#at = 0;
    const headers: Header[] = [];
    let size = 0;
    while (this.#at < block.length) {
      const header = this.#next(headers.length === 0);
      if (header === undefined) continue;
      size += headerSize(header);
      headers.push(header);
      if (size > MAX_HEADER_LIST_BYTES || headers.length > MAX_HEADERS)
        throw new Http2Fault(HTTP2_ERROR.ENHANCE_YOUR_CALM, "a request with more headers than are taken");
    }
    this.#block = new Uint8Array();
    return headers;
  }

  /** Undefined for what is no header. */
  #next(first: boolean): Header | undefined {
    const byte = this.#block[this.#at] ?? 0;
    if (byte >= 0x80) return this.#known(this.#integer(7));
    if (byte >= 0x40) {
      const header = this.#literal(6);
      this.#table.add(header);
      return header;
    }
    if (byte < 0x20) return this.#literal(4);
    const size = this.#integer(5);
    if (!first || size > TABLE_BYTES) throw broken("a change of the header table where none may be");
    this.#table.resize(size);
    return undefined;
  }

  #known(index: number): Header {
    const header = this.#table.get(index);
    if (header === undefined) throw broken(`no header has the number ${index}`);
    return header;
  }

  #literal(prefixBits: number): Header {
    const index = this.#integer(prefixBits);
    const name = index === 0 ? this.#text() : this.#known(index).name;
    return { name, value: this.#text() };
  }

  #text(): string {
    const packed = ((this.#block[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const end = this.#at + length;
    if (end > this.#block.length) throw broken("a header that is cut off");
    const bytes = this.#block.subarray(this.#at, end);
    this.#at = end;
    const text = packed ? decodeHuffman(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
    if (text === undefined) throw broken("a header with a broken text");
    return text;
  }

  #integer(prefixBits: number): number {
    const most = (1 << prefixBits) - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
      if (shift === MAX_INTEGER_SHIFT) throw broken("a number without end");
    }
  }

  #byte(): number {
    const byte = this.#block[this.#at++];
    if (byte === undefined) throw broken("a header that is cut off");
    return byte;
  }
}

/** Sets the size of the table to nothing. Who sends headers by `headerBlock` needs none, and says so to a client that has made it smaller. */
export const EMPTY_TABLE = Buffer.of(0x20);

/** Headers as a block that refers to nothing before it, so that it can be made once and sent to everybody. Texts are ASCII. */
export function headerBlock(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(
    headers.flatMap(([name, value]) =>
      name === ":status" && value === "200" ? [Buffer.of(0x88)] : [Buffer.of(0), textBytes(name), textBytes(value)],
    ),
  );
}

function textBytes(text: string): Buffer {
  return Buffer.concat([integerBytes(text.length), Buffer.from(text, "latin1")]);
}

/** With a prefix of seven bits. */
function integerBytes(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let left = value - 127;
  for (; left >= 128; left >>>= 7) bytes.push((left & 0x7f) | 0x80);
  return Buffer.from([...bytes, left]);
}

const broken = (message: string): Http2Fault => new Http2Fault(HTTP2_ERROR.COMPRESSION_ERROR, message);
