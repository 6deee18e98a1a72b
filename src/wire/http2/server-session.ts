import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import type { SharedPace } from "../shared-pace.ts";
import {
  FLAG,
  FRAME,
  type FrameHead,
  goAwayFrame,
  HTTP2_ERROR,
  type Http2Error,
  Http2Fault,
  MAX_FRAME_BYTES,
  MAX_WINDOW,
  pingFrame,
  resetFrame,
  SETTING,
  SETTINGS_ACK,
  settingsFrame,
  windowUpdateFrame,
} from "./frame.ts";
import { FrameReader } from "./frame-reader.ts";
import type { Header } from "./header-table.ts";
import { EMPTY_TABLE, HeaderDecoder, MAX_HEADER_LIST_BYTES } from "./hpack.ts";
import { Nuisance } from "./nuisance.ts";
import { Outbox } from "./outbox.ts";
import { readDirectly } from "./read-directly.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { checkTrailers, requestHead } from "./request-head.ts";
import { ServerStream, type StreamConnection } from "./server-stream.ts";

export interface SessionOptions {
  readonly maxStreams: number;
  readonly clock: Pick<Clock, "monotonic" | "after">;
  /** How fast large messages may go; given where the connection is over TLS. */
  readonly pace: SharedPace | undefined;
  opened(stream: ServerStream): void;
  /** The client broke the rules; the connection is being ended. */
  failed(fault: Http2Fault): void;
  /** The connection is gone, and all streams with it. Called once. */
  closed(): void;
}

/** How long a client may take to read why it is let go. */
const LINGER_MS = 1_000;
/** A window that is opened by less brings nothing. */
const SMALL_UPDATE = 64;
/** Of streams that were given up longer ago, the client has heard by now. */
const MAX_GIVEN_UP = 100;
const DEFAULT_TABLE_BYTES = 4_096;
const PING_CONTENT = Buffer.alloc(8);

/**
 * HTTP/2 on one connection, as far as a gRPC server needs it (RFC 9113): no push, no priorities, nothing sent that is packed. It is our own, on a plain
 * or TLS socket, because what is sent here is large and the same for many: through Node's it passes as thousands of small pieces, is copied once more over TLS,
 * and each connection has some 30 KB of its own.
 */
export class ServerSession {
  readonly #socket: Socket;
  readonly #options: SessionOptions;
  readonly #outbox: Outbox;
  readonly #reader: FrameReader;
  readonly #decoder = new HeaderDecoder();
  readonly #nuisance: Nuisance;
  readonly #streams = new Map<number, ServerStream>();
  readonly #window = new ReceiveWindow();
  readonly #connection: StreamConnection;
  /** Streams that we reset, the newest last. */
  readonly #givenUp = new Set<number>();
  /** Who waits for answers of the client, in order. */
  readonly #pings: (() => void)[] = [];
  #lastStream = 0;
  /** The client wants no table of headers that are sent again. */
  #noTable = false;
  #greeted = false;
  /** No further streams are taken. */
  #leaving = false;
  #failed = false;

  constructor(socket: Socket, options: SessionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#outbox = new Outbox({
      socket,
      pace: options.pace,
      flooded: () => this.#fail(new Http2Fault(HTTP2_ERROR.ENHANCE_YOUR_CALM, "a client that does not read what it asks for")),
    });
    this.#nuisance = new Nuisance(options.clock);
    this.#reader = new FrameReader({
      data: (stream, content, last) => this.#data(stream, content, last),
      padding: (stream, bytes) => this.#padding(stream, bytes),
      headers: (stream, block, last) => this.#headers(stream, block, last),
      frame: (head, content) => this.#frame(head, content),
      streamFault: (fault) => this.#streamFault(fault),
    });
    this.#connection = {
      outbox: this.#outbox,
      consumed: (bytes) => this.#consumed(bytes),
      headerBlock: (block) => (this.#noTable ? Buffer.concat([EMPTY_TABLE, block]) : block),
      reset: (stream, code) => this.#reset(stream.id, code),
      over: (stream) => this.#remove(stream.id),
    };
    socket.once("end", () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#gone());
    readDirectly(socket, (bytes) => this.#take(bytes));
  }

  /** Bytes the network has taken so far. */
  get written(): number {
    return this.#outbox.written;
  }

  /** Streams that are open. */
  get streams(): number {
    return this.#streams.size;
  }

  /** Asks whether the client is there; `answered` is called when it says so. */
  ping(answered: () => void): void {
    this.#pings.push(answered);
    this.#outbox.control(pingFrame(0, PING_CONTENT));
  }

  /** Asks the client to go elsewhere, takes no further streams, and ends the connection when those that are open are over. */
  leave(): void {
    if (this.#leaving) return;
    this.#leaving = true;
    this.#greet();
    this.#outbox.control(goAwayFrame(this.#lastStream, HTTP2_ERROR.NO_ERROR));
    this.#endIfEmpty();
  }

  #take(bytes: Buffer): void {
    if (this.#failed) return;
    this.#outbox.together(() => {
      try {
        this.#greet();
        this.#reader.take(bytes);
      } catch (error) {
        if (!(error instanceof Http2Fault)) throw error;
        this.#fail(error);
      }
    });
  }

  /** With the answer to what the client said first, so that both go together. */
  #greet(): void {
    if (this.#greeted) return;
    this.#greeted = true;
    const settings: [number, number][] = [
      [SETTING.MAX_CONCURRENT_STREAMS, this.#options.maxStreams],
      [SETTING.MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST_BYTES],
    ];
    this.#outbox.control(settingsFrame(settings));
  }

  #data(id: number, content: Buffer, last: boolean): void {
    this.#count(content.length);
    if (content.length === 0 && !last) this.#nuisance.count();
    let taken = false;
    try {
      const stream = this.#openStream(id);
      stream?.take(content, last);
      taken = stream !== undefined;
    } finally {
      if (!taken) this.#consumed(content.length); // Nobody else will.
    }
  }

  #padding(id: number, bytes: number): void {
    this.#count(bytes);
    this.#consumed(bytes);
    this.#streams.get(id)?.takePadding(bytes);
  }

  #headers(id: number, block: Buffer, last: boolean): void {
    const headers = this.#decoder.decode(block);
    if (id % 2 === 0) throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a stream with a number that no client may choose");
    if (id <= this.#lastStream) {
      this.#trailers(id, headers, last);
      return;
    }
    this.#lastStream = id;
    if (this.#leaving) return; // It was told that nobody looks at it.
    if (this.#streams.size >= this.#options.maxStreams) {
      this.#nuisance.count();
      throw new Http2Fault(HTTP2_ERROR.REFUSED_STREAM, "more streams than are taken", id);
    }
    const stream = new ServerStream(id, requestHead(id, headers), this.#connection);
    if (last) stream.takeEnd();
    this.#streams.set(id, stream);
    this.#options.opened(stream);
  }

  #trailers(id: number, headers: readonly Header[], last: boolean): void {
    if (!this.#streams.has(id) && !this.#givenUp.has(id))
      throw new Http2Fault(HTTP2_ERROR.STREAM_CLOSED, "headers of a stream that is over");
    const stream = this.#openStream(id);
    if (stream?.heard === true) throw new Http2Fault(HTTP2_ERROR.STREAM_CLOSED, "more after the end", id);
    if (!last) throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "headers within content", id);
    checkTrailers(id, headers);
    stream?.takeEnd();
  }

  /** Undefined for one that we gave up, of which the client may not have heard yet. */
  #openStream(id: number): ServerStream | undefined {
    const stream = this.#streams.get(id);
    if (stream !== undefined) return stream;
    this.#known(id);
    this.#nuisance.count();
    if (this.#givenUp.has(id)) return undefined;
    throw new Http2Fault(HTTP2_ERROR.STREAM_CLOSED, "more on a stream that is over", id);
  }

  #known(id: number): void {
    if (id === 0 || id > this.#lastStream) throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a stream that does not exist");
  }

  #frame(head: FrameHead, content: Buffer): void {
    switch (head.type) {
      case FRAME.SETTINGS:
        this.#settings(head, content);
        break;
      case FRAME.WINDOW_UPDATE:
        this.#windowUpdate(head, content);
        break;
      case FRAME.PING:
        this.#ping(head, content);
        break;
      case FRAME.RST_STREAM:
        wantLength(head, 4);
        this.#known(head.stream);
        this.#nuisance.count();
        this.#remove(head.stream);
        break;
      case FRAME.PRIORITY:
        this.#priority(head, content);
        break;
      case FRAME.GOAWAY:
        wantConnection(head);
        this.#leaving = true;
        this.#endIfEmpty();
        break;
      case FRAME.PUSH_PROMISE:
        throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a client that pushes");
      default:
        this.#nuisance.count();
    }
  }

  #settings(head: FrameHead, content: Buffer): void {
    wantConnection(head);
    if ((head.flags & FLAG.ACK) !== 0) {
      wantLength(head, 0);
      return;
    }
    if (head.length % 6 !== 0) throw new Http2Fault(HTTP2_ERROR.FRAME_SIZE_ERROR, "settings that are cut off");
    this.#nuisance.count();
    for (let at = 0; at < head.length; at += 6) this.#setting(content.readUInt16BE(at), content.readUInt32BE(at + 2));
    this.#outbox.control(SETTINGS_ACK);
  }

  #setting(id: number, value: number): void {
    if (id === SETTING.HEADER_TABLE_SIZE) this.#noTable = value < DEFAULT_TABLE_BYTES;
    else if (id === SETTING.INITIAL_WINDOW_SIZE) {
      if (value > MAX_WINDOW) throw new Http2Fault(HTTP2_ERROR.FLOW_CONTROL_ERROR, "a window without bounds");
      this.#outbox.setInitialWindow(
        value,
        [...this.#streams.values()].map(({ queue }) => queue),
      );
    } else if (
      (id === SETTING.ENABLE_PUSH && value > 1) ||
      (id === SETTING.MAX_FRAME_SIZE && (value < MAX_FRAME_BYTES || value >= 2 ** 24))
    )
      throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a setting with an impossible value");
  }

  #windowUpdate(head: FrameHead, content: Buffer): void {
    wantLength(head, 4);
    const bytes = content.readUInt32BE(0) & MAX_WINDOW;
    if (head.stream !== 0) this.#known(head.stream);
    if (bytes === 0) throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a window that is opened by nothing", head.stream || undefined);
    if (bytes < SMALL_UPDATE) this.#nuisance.count();
    const queue = this.#streams.get(head.stream)?.queue;
    if (head.stream === 0 || queue !== undefined) this.#outbox.widen(queue, bytes);
  }

  #ping(head: FrameHead, content: Buffer): void {
    wantConnection(head);
    wantLength(head, 8);
    if ((head.flags & FLAG.ACK) === 0) this.#outbox.control(pingFrame(FLAG.ACK, content));
    else this.#pings.shift()?.();
  }

  /** Nobody minds priorities any more. */
  #priority(head: FrameHead, content: Buffer): void {
    this.#nuisance.count();
    if (head.stream === 0) throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a priority without a stream");
    if (head.length !== 5) throw new Http2Fault(HTTP2_ERROR.FRAME_SIZE_ERROR, "a priority that is cut off", head.stream);
    if ((content.readUInt32BE(0) & MAX_WINDOW) === head.stream)
      throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a stream that depends on itself", head.stream);
  }

  /** A stream that never was cannot be reset. */
  #streamFault(fault: Http2Fault): void {
    const { stream = 0, code } = fault;
    if (stream > this.#lastStream) this.#fail(fault);
    else this.#reset(stream, code);
  }

  #reset(id: number, code: Http2Error): void {
    this.#outbox.control(resetFrame(id, code));
    this.#givenUp.add(id);
    for (const oldest of this.#givenUp) {
      if (this.#givenUp.size <= MAX_GIVEN_UP) break;
      this.#givenUp.delete(oldest);
    }
    this.#remove(id);
  }

  #remove(id: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    this.#streams.delete(id);
    stream.close();
    if (this.#leaving) this.#endIfEmpty();
  }

  #endIfEmpty(): void {
    if (this.#streams.size === 0) this.#outbox.finish();
  }

  /** The client must not send more than it was told we take. */
  #count(bytes: number): void {
    if (!this.#window.take(bytes)) throw new Http2Fault(HTTP2_ERROR.FLOW_CONTROL_ERROR, "more than may be sent");
  }

  #consumed(bytes: number): void {
    const opened = this.#window.read(bytes);
    if (opened > 0) this.#outbox.control(windowUpdateFrame(0, opened));
  }

  /** Says why and ends the connection, which may not be possible: then it is cut. */
  #fail(fault: Http2Fault): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#leaving = true;
    this.#options.failed(fault);
    this.#outbox.control(goAwayFrame(this.#lastStream, fault.code));
    for (const id of [...this.#streams.keys()]) this.#remove(id);
    this.#outbox.finish();
    const cancel = this.#options.clock.after(LINGER_MS, () => this.#socket.destroy());
    this.#socket.once("close", cancel);
  }

  #gone(): void {
    this.#failed = true;
    for (const id of [...this.#streams.keys()]) this.#remove(id);
    this.#options.closed();
  }
}

function wantLength({ length }: FrameHead, wanted: number): void {
  if (length !== wanted) throw new Http2Fault(HTTP2_ERROR.FRAME_SIZE_ERROR, `a frame of ${length} bytes in place of ${wanted}`);
}

function wantConnection({ stream }: FrameHead): void {
  if (stream !== 0) throw new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, "a frame of the connection on a stream");
}
