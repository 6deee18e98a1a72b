/** Kinds of frames (RFC 9113, 6). */
export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const FLAG = { ACK: 0x1, END_STREAM: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const;

/** Parameters of SETTINGS frames that concern us. */
export const SETTING = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

/** Why a stream or a connection is ended (RFC 9113, 7). */
export const HTTP2_ERROR = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const;
export type Http2Error = (typeof HTTP2_ERROR)[keyof typeof HTTP2_ERROR];

export const FRAME_HEADER_BYTES = 9;
/** What everybody takes without having said so, and all that we take. */
export const MAX_FRAME_BYTES = 16_384;
/** What either side may send before it is told that it may send more. */
export const INITIAL_WINDOW = 65_535;
export const MAX_WINDOW = 2 ** 31 - 1;

/** What a client did that a connection, or the stream named, does not survive. Thrown where it is found, answered by the session. */
export class Http2Fault extends Error {
  override readonly name = "Http2Fault";
  readonly code: Http2Error;
  /** Absent where the connection as a whole cannot go on. */
  readonly stream: number | undefined;

  constructor(code: Http2Error, message: string, stream?: number) {
    super(message);
    this.code = code;
    this.stream = stream;
  }
}

export interface FrameHead {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly length: number;
}

/** Writes the nine bytes that precede the content of a frame. */
export function writeFrameHead(into: Buffer, at: number, { type, flags, stream, length }: FrameHead): void {
  into.writeUIntBE(length, at, 3);
  into[at + 3] = type;
  into[at + 4] = flags;
  into.writeUInt32BE(stream, at + 5);
}

/** A whole frame. */
export function frameOf(head: Omit<FrameHead, "length">, content: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + content.length);
  writeFrameHead(frame, 0, { ...head, length: content.length });
  frame.set(content, FRAME_HEADER_BYTES);
  return frame;
}

/** One or more frames with the headers or trailers of a stream. */
export function headerFrames(stream: number, block: Uint8Array, endStream: boolean): Buffer {
  const flags = endStream ? FLAG.END_STREAM : 0;
  if (block.length <= MAX_FRAME_BYTES) return frameOf({ type: FRAME.HEADERS, flags: flags | FLAG.END_HEADERS, stream }, block);
  const frames = [frameOf({ type: FRAME.HEADERS, flags, stream }, block.subarray(0, MAX_FRAME_BYTES))];
  for (let at = MAX_FRAME_BYTES; at < block.length; at += MAX_FRAME_BYTES) {
    const part = block.subarray(at, at + MAX_FRAME_BYTES);
    frames.push(frameOf({ type: FRAME.CONTINUATION, flags: at + part.length === block.length ? FLAG.END_HEADERS : 0, stream }, part));
  }
  return Buffer.concat(frames);
}

export const SETTINGS_ACK = frameOf({ type: FRAME.SETTINGS, flags: FLAG.ACK, stream: 0 }, Buffer.alloc(0));

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const content = Buffer.allocUnsafe(settings.length * 6);
  settings.forEach(([id, value], index) => {
    content.writeUInt16BE(id, index * 6);
    content.writeUInt32BE(value, index * 6 + 2);
  });
  return frameOf({ type: FRAME.SETTINGS, flags: 0, stream: 0 }, content);
}

export const windowUpdateFrame = (stream: number, bytes: number): Buffer =>
  frameOf({ type: FRAME.WINDOW_UPDATE, flags: 0, stream }, uint32(bytes));

export const resetFrame = (stream: number, code: Http2Error): Buffer => frameOf({ type: FRAME.RST_STREAM, flags: 0, stream }, uint32(code));

export const pingFrame = (flags: number, content: Uint8Array): Buffer => frameOf({ type: FRAME.PING, flags, stream: 0 }, content);

/** `last` is the highest stream that was, or may have been, looked at. */
export const goAwayFrame = (last: number, code: Http2Error): Buffer =>
  frameOf({ type: FRAME.GOAWAY, flags: 0, stream: 0 }, Buffer.concat([uint32(last), uint32(code)]));

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value, 0);
  return bytes;
}
