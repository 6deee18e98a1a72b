import { Pieces } from "../pieces.ts";
import { FLAG, FRAME, FRAME_HEADER_BYTES, type FrameHead, HTTP2_ERROR, Http2Fault, MAX_FRAME_BYTES } from "./frame.ts";

/** What comes on a connection. A handler may throw `Http2Fault`; one that names a stream leaves the connection as it is. */
export interface FrameEvents {
  /** Some of the content of a stream; `last` says that nothing follows. A long frame comes in pieces, as the network brings them. */
  data(stream: number, content: Buffer, last: boolean): void;
  /** Bytes that have no content, but count as such. */
  padding(stream: number, bytes: number): void;
  /** Headers or trailers, whole and still packed. */
  headers(stream: number, block: Buffer, last: boolean): void;
  /** Any other frame, whole. */
  frame(head: FrameHead, content: Buffer): void;
  /** What is left undone by a fault of a stream alone. */
  streamFault(fault: Http2Fault): void;
}

/** What clients begin with. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** Packed headers of one request. A flood of frames without end is cut when it comes to this. */
const MAX_BLOCK_BYTES = 64 * 1024;
const EMPTY = Buffer.alloc(0);

interface ContentFrame {
  readonly stream: number;
  readonly last: boolean;
  /** Bytes still to come. */
  left: number;
}

/** Cuts what comes over a connection into frames. Holds at most one frame, and of content nothing. */
export class FrameReader {
  readonly #events: FrameEvents;
  #rest: Buffer = EMPTY;
  /** What is expected before anything else may come. */
  #awaited: "preface" | "settings" | undefined = "preface";
  /** The frame with content that is being passed on. */
  #content: ContentFrame | undefined;
  /** Headers of which more is to come. */
  #block: { readonly stream: number; readonly last: boolean; readonly parts: Pieces } | undefined;

  constructor(events: FrameEvents) {
    this.#events = events;
  }

  /** Throws `Http2Fault` where the connection cannot go on. */
  take(bytes: Buffer): void {
    const held = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    for (;;) {
      const next = this.#step(held, at);
      if (next === undefined) break;
      at = next;
    }
    // A copy, so that the few bytes of a frame that is not there yet do not keep all that came with them.
    this.#rest = at === held.length ? EMPTY : Buffer.from(held.subarray(at));
  }

  /** Where the next step begins, or nothing where more has to come first. */
  #step(held: Buffer, at: number): number | undefined {
    if (this.#content !== undefined) return at === held.length ? undefined : this.#passOn(this.#content, held, at);
    if (this.#awaited === "preface") return this.#preface(held);
    if (held.length - at < FRAME_HEADER_BYTES) return undefined;
    const head = readHead(held, at);
    this.#check(head);
    const from = at + FRAME_HEADER_BYTES;
    if (head.type === FRAME.DATA && (head.flags & FLAG.PADDED) === 0) {
      this.#content = { stream: head.stream, last: (head.flags & FLAG.END_STREAM) !== 0, left: head.length };
      return head.length === 0 ? this.#passOn(this.#content, held, from) : from;
    }
    const end = from + head.length;
    if (held.length < end) return undefined;
    this.#handle(head, held.subarray(from, end));
    return end;
  }

  #preface(held: Buffer): number | undefined {
    const length = Math.min(held.length, PREFACE.length);
    if (PREFACE.compare(held, 0, length, 0, length) !== 0) throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "this is not HTTP/2");
    if (length < PREFACE.length) return undefined;
    this.#awaited = "settings";
    return PREFACE.length;
  }

  #check({ type, flags, stream, length }: FrameHead): void {
    if (this.#awaited === "settings") {
      if (type !== FRAME.SETTINGS || (flags & FLAG.ACK) !== 0)
        throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "no settings at the beginning");
      this.#awaited = undefined;
    }
    if (length > MAX_FRAME_BYTES) throw new Http2Fault(HTTP2_ERROR.FRAME_SIZE_ERROR, `a frame of ${length} bytes`);
    const open = this.#block?.stream;
    if (open !== undefined ? type !== FRAME.CONTINUATION || stream !== open : type === FRAME.CONTINUATION)
      throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "headers that are interrupted, or go on where none began");
    if (type === FRAME.DATA && stream === 0) throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "content without a stream");
  }

  #passOn(frame: ContentFrame, held: Buffer, at: number): number {
    const content = held.subarray(at, at + frame.left);
    frame.left -= content.length;
    const ended = frame.left === 0;
    if (ended) this.#content = undefined;
    this.#guard(() => this.#events.data(frame.stream, content, ended && frame.last));
    return at + content.length;
  }

  #handle(head: FrameHead, content: Buffer): void {
    this.#guard(() => {
      if (head.type === FRAME.DATA) this.#padded(head, content);
      else if (head.type === FRAME.HEADERS) this.#openBlock(head, content);
      else if (head.type === FRAME.CONTINUATION) this.#continueBlock(head, content);
      else this.#events.frame(head, content);
    });
  }

  #padded({ stream, flags }: FrameHead, content: Buffer): void {
    const inner = unpadded(content);
    this.#events.padding(stream, content.length - inner.length);
    this.#events.data(stream, inner, (flags & FLAG.END_STREAM) !== 0);
  }

  #openBlock({ stream, flags }: FrameHead, content: Buffer): void {
    const inner = (flags & FLAG.PADDED) !== 0 ? unpadded(content) : content;
    const prioritised = (flags & FLAG.PRIORITY) !== 0;
    if (prioritised && inner.length < 5) throw new Http2Fault(HTTP2_ERROR.FRAME_SIZE_ERROR, "headers that are cut off");
    this.#block = { stream, last: (flags & FLAG.END_STREAM) !== 0, parts: new Pieces() };
    this.#continueBlock({ stream, flags, type: FRAME.HEADERS, length: inner.length }, prioritised ? inner.subarray(5) : inner);
    if (prioritised && (inner.readUInt32BE(0) & 0x7fffffff) === stream)
      throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a stream that depends on itself", stream);
  }

  #continueBlock({ flags }: FrameHead, content: Buffer): void {
    const block = this.#block;
    if (block === undefined) return;
    const complete = (flags & FLAG.END_HEADERS) !== 0;
    if (block.parts.size + content.length > MAX_BLOCK_BYTES || (content.length === 0 && !complete))
      throw new Http2Fault(HTTP2_ERROR.ENHANCE_YOUR_CALM, "headers that do not come to an end");
    block.parts.push(content);
    if (!complete) return;
    this.#block = undefined;
    this.#events.headers(block.stream, block.parts.takeAll(), block.last);
  }

  /** What is wrong with one stream does not concern the others. */
  #guard(handle: () => void): void {
    try {
      handle();
    } catch (error) {
      if (!(error instanceof Http2Fault) || error.stream === undefined) throw error;
      this.#events.streamFault(error);
    }
  }
}

const readHead = (bytes: Buffer, at: number): FrameHead => ({
  length: bytes.readUIntBE(at, 3),
  type: bytes[at + 3] ?? 0,
  flags: bytes[at + 4] ?? 0,
  stream: bytes.readUInt32BE(at + 5) & 0x7fffffff,
});

function unpadded(content: Buffer): Buffer {
  const padding = content[0] ?? 0;
  if (content.length === 0 || padding >= content.length) throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a frame that is all padding");
  return content.subarray(1, content.length - padding);
}
