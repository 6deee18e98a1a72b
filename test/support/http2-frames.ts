/*
 * HTTP/2 frames by hand (RFC 9113), for clients that break its rules: a library would not send them.
 */

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

const FRAME = { headers: 1, reset: 3, settings: 4, continuation: 9 } as const;
const END_HEADERS = 4;
const CANCEL = 8;

function frame(type: number, stream: number, payload: Buffer, flags = 0): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export const settingsFrame = (): Buffer => frame(FRAME.settings, 0, Buffer.alloc(0));

export const resetFrame = (stream: number): Buffer => {
  const code = Buffer.alloc(4);
  code.writeUInt32BE(CANCEL);
  return frame(FRAME.reset, stream, code);
};

/** The headers of a call; without `complete` more have to follow in continuations. */
export const headersFrame = (stream: number, block: Buffer, complete = true): Buffer =>
  frame(FRAME.headers, stream, block, complete ? END_HEADERS : 0);

export const continuationFrame = (stream: number, block: Buffer, complete = false): Buffer =>
  frame(FRAME.continuation, stream, block, complete ? END_HEADERS : 0);

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
