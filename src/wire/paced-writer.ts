import type { Writable } from "node:stream";
import { type MessageBytes, messageSize } from "./shared-blocks.ts";
import type { SharedPace } from "./shared-pace.ts";

/**
 * What is handed over at a time: with the headers of its frames, and those of the call before the first, less than 32 KB. A TLS socket keeps a buffer as large as the most it was handed at once for as long as
 * it is open, and copies all of it first; a copy of 32 KB or more is mapped and unmapped each time (`bin/run` sets that threshold), which costs more than encrypting it.
 */
const PIECE_BYTES = 32 * 1024 - 512;

interface Queued {
  readonly pieces: Iterator<MessageBytes, undefined>;
  flushed(): void;
}

/**
 * Writes large messages piece by piece, each when the network has taken the one before. For streams over TLS: all that is handed to such a socket is encrypted
 * at once into memory of its own, which for a message of some MB to hundreds of clients is more than all else together (measured, 4.2 MB to 50 clients that do not
 * read: 210 MB, and none this way; the CPU is less too, since a piece stays in the processor's cache). The pace is shared with the writers of other streams.
 */
export class PacedWriter {
  readonly #stream: Writable;
  readonly #pace: SharedPace;
  readonly #queue: Queued[] = [];
  #writing = false;
  #ending = false;

  constructor(stream: Writable, pace: SharedPace) {
    this.#stream = stream;
    this.#pace = pace;
  }

  /** Queues a message; `flushed` is called when the network has taken all of it. */
  write(message: MessageBytes, flushed: () => void): void {
    this.#queue.push({ pieces: piecesOf(message), flushed });
    if (!this.#writing) this.#next();
  }

  /** Ends the stream after what was queued. */
  end(): void {
    this.#ending = true;
    if (!this.#writing) this.#stream.end();
  }

  #next(): void {
    const [head] = this.#queue;
    this.#writing = head !== undefined;
    if (head === undefined) {
      if (this.#ending) this.#stream.end();
      return;
    }
    const { value: piece } = head.pieces.next();
    if (piece !== undefined) {
      this.#pace.take(messageSize(piece), () => writeTogether(this.#stream, piece, () => this.#next()));
      return;
    }
    this.#queue.shift();
    head.flushed();
    this.#next();
  }
}

/** Hands buffers to a stream so that they go on in one call. A stream that is destroyed calls nothing back. */
export function writeTogether(stream: Writable, buffers: MessageBytes, written: () => void): void {
  const done = (error: Error | null | undefined): void => {
    if (error == null) written();
  };
  if (buffers.length === 1) {
    stream.write(buffers[0], done);
    return;
  }
  stream.cork();
  for (const bytes of buffers.slice(0, -1)) stream.write(bytes);
  stream.write(buffers.at(-1), done);
  stream.uncork();
}

/** Cuts a message without copying. */
function* piecesOf(message: MessageBytes): Generator<MessageBytes, undefined> {
  let piece: Uint8Array[] = [];
  let size = 0;
  for (const buffer of message) {
    for (let at = 0; at < buffer.length; ) {
      const part = buffer.subarray(at, at + PIECE_BYTES - size);
      piece.push(part);
      size += part.length;
      at += part.length;
      if (size < PIECE_BYTES) continue;
      yield piece;
      piece = [];
      size = 0;
    }
  }
  if (piece.length > 0) yield piece;
  return undefined;
}
