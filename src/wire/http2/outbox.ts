import type { Socket } from "node:net";
import { type MessageBytes, messageSize } from "../shared-blocks.ts";
import type { SharedPace } from "../shared-pace.ts";
import {
  FRAME,
  FRAME_HEADER_BYTES,
  HTTP2_ERROR,
  Http2Fault,
  INITIAL_WINDOW,
  MAX_FRAME_BYTES,
  MAX_WINDOW,
  writeFrameHead,
} from "./frame.ts";

/** What one stream has to send, in order. Made by `Outbox.open`. */
export interface SendQueue {
  readonly stream: number;
  /** What the client takes of this stream without having said that it takes more. */
  window: number;
  readonly items: Item[];
}

type Item = FramesItem | ContentItem;

/** Frames that are sent as they are, such as headers. */
interface FramesItem {
  readonly frames: Buffer;
  /** Called when they were handed to the network. */
  sent?(): void;
}

interface ContentItem {
  readonly buffers: MessageBytes;
  /** The buffer that is next, and where in it. */
  index: number;
  offset: number;
  left: number;
  flushed(): void;
}

export interface OutboxOptions {
  readonly socket: Socket;
  /** How fast large messages may go; given where the connection is over TLS. */
  readonly pace: SharedPace | undefined;
  /** The client asks for more answers than it reads. */
  flooded(): void;
}

/** What is handed over at a time in plaintext: the network refers to our buffers, so it costs no memory, and others on the connection wait for no more. */
const PIECE_BYTES = 256 * 1024;
/**
 * The same over TLS. All of it is encrypted at once, into memory that the connection has from then on. One byte less than two records, since Node makes room for one more where the
 * last is full (measured with 500 proxies: twice as much saves 5 % of the CPU of a route change and takes 16 MB, half as much costs a fifth more and saves 8 MB).
 */
const ENCRYPTED_PIECE_BYTES = 2 * MAX_FRAME_BYTES - 1;
/** A batch up to this size goes as one copy: what the network does with several buffers costs more. */
const SMALL_BYTES = 16 * 1024;
/** Answers to a client that does not take them, such as to pings. More is a flood. */
const MAX_CONTROL_BYTES = 64 * 1024;

/** Where what is to be encrypted is put together; a TLS socket has read all of it when `write` returns. */
let together = Buffer.alloc(0);

/**
 * The sending side of a connection: frames of all its streams in turn, as far as the client takes them, one batch after the other. The next is put together when the
 * network has taken the one before, so what waits is held as the messages it consists of, which other connections share, and never as frames.
 */
export class Outbox {
  readonly #socket: Socket;
  readonly #pace: SharedPace | undefined;
  readonly #queues = new Set<SendQueue>();
  readonly #pieceBytes: number;
  readonly #flooded: () => void;
  #control: Buffer[] = [];
  #controlBytes = 0;
  #window = INITIAL_WINDOW;
  #initialWindow = INITIAL_WINDOW;
  #writing = false;
  /** How many want what is said meanwhile to go together. */
  #holds = 0;
  #ending = false;
  #written = 0;

  constructor({ socket, pace, flooded }: OutboxOptions) {
    this.#socket = socket;
    this.#pace = pace;
    this.#flooded = flooded;
    this.#pieceBytes = pace === undefined ? PIECE_BYTES : ENCRYPTED_PIECE_BYTES;
  }

  /** Bytes the network has taken. */
  get written(): number {
    return this.#written;
  }

  open(stream: number): SendQueue {
    return { stream, window: this.#initialWindow, items: [] };
  }

  /** What was queued and not handed over is forgotten. */
  close(queue: SendQueue): void {
    queue.items.length = 0;
    this.#queues.delete(queue);
  }

  /** Sends a frame of the connection itself; it goes before all that waits. */
  control(frame: Buffer): void {
    this.#control.push(frame);
    this.#controlBytes += frame.length;
    if (this.#controlBytes > MAX_CONTROL_BYTES) this.#flooded();
    this.#flush();
  }

  /** Queues frames that are not counted against what the client takes. */
  frames(queue: SendQueue, frames: Buffer, sent?: () => void): void {
    queue.items.push({ frames, ...(sent !== undefined && { sent }) });
    this.#queues.add(queue);
    this.#flush();
  }

  /** Queues content; `flushed` is called when the network has taken all of it. */
  content(queue: SendQueue, buffers: MessageBytes, flushed: () => void): void {
    queue.items.push({ buffers, index: 0, offset: 0, left: messageSize(buffers), flushed });
    this.#queues.add(queue);
    this.#flush();
  }

  /** The client takes more, of one stream or of all together. */
  widen(queue: SendQueue | undefined, bytes: number): void {
    const window = (queue?.window ?? this.#window) + bytes;
    if (window > MAX_WINDOW) throw new Http2Fault(HTTP2_ERROR.FLOW_CONTROL_ERROR, "a window without bounds", queue?.stream);
    if (queue === undefined) this.#window = window;
    else queue.window = window;
    this.#flush();
  }

  /** What a client takes of a stream to begin with. It concerns those that are open, too, and may leave them less than nothing. */
  setInitialWindow(bytes: number, open: Iterable<SendQueue>): void {
    const change = bytes - this.#initialWindow;
    this.#initialWindow = bytes;
    for (const queue of open) {
      queue.window += change;
      if (queue.window > MAX_WINDOW) throw new Http2Fault(HTTP2_ERROR.FLOW_CONTROL_ERROR, "a window without bounds");
    }
    this.#flush();
  }

  /** Ends the connection when all that can be sent has been. */
  finish(): void {
    this.#ending = true;
    this.#flush();
  }

  /** Hands nothing over while this runs, so that all that is said in it goes together. */
  together(say: () => void): void {
    this.#holds += 1;
    try {
      say();
    } finally {
      this.#holds -= 1;
      this.#flush();
    }
  }

  #flush(): void {
    if (this.#writing || this.#holds > 0 || this.#socket.destroyed) return;
    const batch = this.#batch();
    if (batch.size === 0) {
      for (const call of batch.done) call(); // Content without bytes has gone when all before it has.
      if (this.#ending) this.#socket.end();
      return;
    }
    this.#writing = true;
    if (this.#pace === undefined) this.#write(batch);
    else this.#pace.take(batch.size, () => this.#write(batch));
  }

  #write({ buffers, size, done }: Batch): void {
    if (this.#socket.destroyed) return;
    const taken = (error?: Error | null): void => {
      if (error != null) return;
      this.#writing = false;
      this.#written += size;
      for (const call of done) call();
      this.#flush();
    };
    const [only] = buffers;
    if (buffers.length === 1 && only !== undefined) this.#socket.write(only, taken);
    else if (this.#pace !== undefined) this.#socket.write(copied(buffers, size), taken);
    else if (size <= SMALL_BYTES) this.#socket.write(Buffer.concat(buffers, size), taken);
    else {
      this.#socket.cork();
      for (const bytes of buffers.slice(0, -1)) this.#socket.write(bytes);
      this.#socket.write(buffers.at(-1) ?? "", taken);
      this.#socket.uncork();
    }
  }

  /** As much as goes at once: what the connection has to say, then each stream in turn. */
  #batch(): Batch {
    const batch: Batch = { buffers: this.#control, size: this.#controlBytes, done: [] };
    this.#control = [];
    this.#controlBytes = 0;
    for (let turns = this.#queues.size; turns > 0 && batch.size < this.#pieceBytes; turns--) {
      const [queue] = this.#queues;
      if (queue === undefined) break;
      this.#take(queue, batch);
      this.#queues.delete(queue);
      if (queue.items.length > 0) this.#queues.add(queue); // It is the last of the next round.
    }
    return batch;
  }

  #take(queue: SendQueue, batch: Batch): void {
    for (let item = queue.items[0]; item !== undefined; item = queue.items[0]) {
      if ("frames" in item) {
        batch.buffers.push(item.frames);
        batch.size += item.frames.length;
        if (item.sent !== undefined) batch.done.push(item.sent);
      } else {
        this.#takeContent(queue, item, batch);
        if (item.left > 0) return;
        batch.done.push(item.flushed);
      }
      queue.items.shift();
    }
  }

  #takeContent(queue: SendQueue, item: ContentItem, batch: Batch): void {
    while (item.left > 0) {
      const room = this.#pieceBytes - batch.size - FRAME_HEADER_BYTES;
      const size = Math.min(item.left, MAX_FRAME_BYTES, queue.window, this.#window, room);
      if (size <= 0) return;
      const head = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
      writeFrameHead(head, 0, { type: FRAME.DATA, flags: 0, stream: queue.stream, length: size });
      batch.buffers.push(head);
      cut(item, size, batch.buffers);
      batch.size += FRAME_HEADER_BYTES + size;
      queue.window -= size;
      this.#window -= size;
    }
  }
}

interface Batch {
  readonly buffers: Uint8Array[];
  size: number;
  /** Called when the network has taken it. */
  readonly done: (() => void)[];
}

/** Moves the next bytes of an item to `into`, without copying them. */
function cut(item: ContentItem, bytes: number, into: Uint8Array[]): void {
  item.left -= bytes;
  for (let wanted = bytes; wanted > 0; ) {
    const buffer = item.buffers[item.index];
    if (buffer === undefined) return;
    const part = item.offset === 0 && buffer.length <= wanted ? buffer : buffer.subarray(item.offset, item.offset + wanted);
    if (part.length > 0) into.push(part);
    wanted -= part.length;
    item.offset += part.length;
    if (item.offset < buffer.length) continue;
    item.index += 1;
    item.offset = 0;
  }
}

/** One buffer for all connections: what is in it is encrypted before the next comes. */
function copied(buffers: readonly Uint8Array[], size: number): Buffer {
  if (together.length < size) together = Buffer.allocUnsafeSlow(Math.max(size, ENCRYPTED_PIECE_BYTES + MAX_FRAME_BYTES));
  let at = 0;
  for (const bytes of buffers) {
    together.set(bytes, at);
    at += bytes.length;
  }
  return together.subarray(0, size);
}
