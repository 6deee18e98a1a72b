/*
 * HTTP/2 frames by hand (RFC 9113), for clients that break its rules: a library would not send them.
 */

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Types of frames, and the flags we set or look for. */
export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, windowUpdate: 8, continuation: 9 } as const;
export const FRAME_FLAG = { ack: 1, endHeaders: 4 } as const;
/** Length of a frame's head. */
export const FRAME_HEAD = 9;
const CANCEL = 8;

interface FrameHead {
  readonly type: number;
  readonly flags?: number;
  /** 0 is the connection. */
  readonly stream?: number;
}

/** One frame. */
export function http2Frame({ type, flags = 0, stream = 0 }: FrameHead, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export const settingsFrame = (): Buffer => http2Frame({ type: FRAME.settings });

export const resetFrame = (stream: number): Buffer => {
  const code = Buffer.alloc(4);
  code.writeUInt32BE(CANCEL);
  return http2Frame({ type: FRAME.reset, stream }, code);
};

/** The headers of a call; without `complete` more have to follow in continuations. */
export const headersFrame = (stream: number, block: Buffer, complete = true): Buffer =>
  http2Frame({ type: FRAME.headers, flags: complete ? FRAME_FLAG.endHeaders : 0, stream }, block);

export const continuationFrame = (stream: number, block: Buffer, complete = false): Buffer =>
  http2Frame({ type: FRAME.continuation, flags: complete ? FRAME_FLAG.endHeaders : 0, stream }, block);

/** A header block (RFC 7541) of literals that are neither indexed nor compressed. */
export const headerBlock = (headers: Readonly<Record<string, string>>): Buffer =>
  Buffer.concat(Object.entries(headers).flatMap(([name, value]) => [Buffer.of(0), literal(name), literal(value)]));

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([lengthOf(bytes.length), bytes]);
}

/** An integer with a prefix of seven bits. */
function lengthOf(length: number): Buffer {
  if (length < 127) return Buffer.of(length);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}
