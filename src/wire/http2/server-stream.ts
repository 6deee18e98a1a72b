import { Pieces } from "../pieces.ts";
import type { MessageBytes } from "../shared-blocks.ts";
import { HTTP2_ERROR, type Http2Error, Http2Fault, headerFrames, windowUpdateFrame } from "./frame.ts";
import type { Outbox, SendQueue } from "./outbox.ts";
import { ReceiveWindow } from "./receive-window.ts";
import type { RequestHead } from "./request-head.ts";

/** What happens on a stream. `closed` comes once, last: both sides have said all, or one has given up. */
export interface StreamEvents {
  content(bytes: Buffer): void;
  /** The client has said all it will say. */
  finished(): void;
  closed(): void;
}

/** What a stream needs of its connection. */
export interface StreamConnection {
  readonly outbox: Outbox;
  /** Content was read, or is never going to be: the client may send as much again on this connection. */
  consumed(bytes: number): void;
  /** Headers as they are to go on this connection. */
  headerBlock(block: Buffer): Buffer;
  /** Tells the client that a stream is over. */
  reset(stream: ServerStream, code: Http2Error): void;
  /** Both sides have said all. */
  over(stream: ServerStream): void;
}

/** One request and its answer. */
export class ServerStream {
  readonly id: number;
  readonly head: RequestHead;
  readonly queue: SendQueue;
  readonly #connection: StreamConnection;
  /** Content that came while nobody read; no more than the client may send unasked. */
  readonly #unread = new Pieces();
  #events: StreamEvents | undefined;
  #paused = false;
  readonly #window = new ReceiveWindow();
  /** Content still to come, where the client said how much. */
  #announced: number | undefined;
  /** The client has said all, and whoever listens was told so. */
  #heard = false;
  #finished = false;
  /** We have said all, and it has gone. */
  #ended = false;
  #sent = false;
  #closed = false;

  constructor(id: number, head: RequestHead, connection: StreamConnection) {
    this.id = id;
    this.head = head;
    this.#connection = connection;
    this.queue = connection.outbox.open(id);
    const length = head.get("content-length");
    if (length !== undefined) this.#announced = Number(length);
  }

  /** Whether the client has said all it will say. */
  get heard(): boolean {
    return this.#heard;
  }

  /** Starts to read. */
  listen(events: StreamEvents): void {
    this.#events = events;
    if (this.#closed) events.closed();
    else this.#passOn();
  }

  /** Reads no more: the client may send what its window allows, and then has to wait. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#passOn();
  }

  /** What is said while this runs goes to the network together. */
  together(say: () => void): void {
    this.#connection.outbox.together(say);
  }

  /** Sends headers. */
  respond(block: Buffer): void {
    if (!this.#closed && !this.#ended)
      this.#connection.outbox.frames(this.queue, headerFrames(this.id, this.#connection.headerBlock(block), false));
  }

  /** Queues content; `flushed` is called when the network has taken all of it, and never when the stream is over before. */
  write(buffers: MessageBytes, flushed: () => void): void {
    if (this.#closed || this.#ended) return;
    this.#connection.outbox.content(this.queue, buffers, () => {
      if (!this.#closed) flushed();
    });
  }

  /** Sends headers that are the last, after all that was queued. `sent` is called when they have gone. */
  end(block: Buffer, sent: () => void): void {
    if (this.#closed || this.#ended) return;
    this.#ended = true;
    const frames = headerFrames(this.id, this.#connection.headerBlock(block), true);
    this.#connection.outbox.frames(this.queue, frames, () => {
      if (this.#closed) return;
      this.#sent = true;
      if (this.#heard) this.#connection.over(this);
      else sent();
    });
  }

  /** Gives the stream up, with all that was queued. */
  reset(code: Http2Error): void {
    if (!this.#closed) this.#connection.reset(this, code);
  }

  /** Content from the client. Throws `Http2Fault`. */
  take(content: Buffer, last: boolean): void {
    if (this.#heard) throw new Http2Fault(HTTP2_ERROR.STREAM_CLOSED, "more after the end", this.id);
    this.#count(content.length);
    if (this.#announced !== undefined) this.#announced -= content.length;
    if (last) this.#noteEnd();
    this.#unread.push(content);
    this.#passOn();
  }

  /** Bytes that count as content, and have none. Throws `Http2Fault`. */
  takePadding(bytes: number): void {
    this.#count(bytes);
    this.#giveBack(bytes);
  }

  /** The client, of which that was not heard before, has said all. Throws `Http2Fault`. */
  takeEnd(): void {
    this.#noteEnd();
    this.#passOn();
  }

  /** Called by the connection, which no longer knows it. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#connection.consumed(this.#unread.size);
    this.#unread.clear();
    this.#connection.outbox.close(this.queue);
    this.#events?.closed();
  }

  /** The client must not send more than it was told we take. */
  #count(bytes: number): void {
    if (!this.#window.take(bytes)) throw new Http2Fault(HTTP2_ERROR.FLOW_CONTROL_ERROR, "more than may be sent", this.id);
  }

  #giveBack(bytes: number): void {
    const opened = this.#window.read(bytes);
    if (opened > 0 && !this.#heard) this.#connection.outbox.control(windowUpdateFrame(this.id, opened));
  }

  #noteEnd(): void {
    if (this.#announced !== undefined && this.#announced !== 0)
      throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "not as much content as was announced", this.id);
    this.#heard = true;
  }

  #passOn(): void {
    const events = this.#events;
    if (events === undefined) return;
    while (!this.#paused && !this.#closed) {
      const content = this.#unread.shift();
      if (content === undefined) break;
      this.#connection.consumed(content.length);
      this.#giveBack(content.length);
      events.content(content);
    }
    if (this.#paused || this.#closed || !this.#heard || this.#finished) return;
    this.#finished = true;
    events.finished();
    if (this.#sent) this.#connection.over(this);
  }
}
