import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Peer } from "./discovery-stream.ts";
import { GRPC_STATUS, type GrpcStatus } from "./grpc-status.ts";
import { HTTP2_ERROR } from "./http2/frame.ts";
import { headerBlock } from "./http2/hpack.ts";
import type { ServerStream } from "./http2/server-stream.ts";
import { MESSAGE_PREFIX_BYTES, MessageReader } from "./message-reader.ts";
import type { Misbehaviour } from "./misbehaviour.ts";
import { responseHead } from "./response-head.ts";
import { type MessageBytes, messageSize } from "./shared-blocks.ts";

/** What happens on a call. `ended` comes once, last. */
export interface CallEvents {
  message(bytes: Buffer): void;
  /** The client has said all it will say. */
  finished(): void;
  ended(): void;
}

export interface CallOptions {
  readonly stream: ServerStream;
  /** Who is at the other end of the connection. */
  readonly connection: Omit<Peer, "header">;
  readonly maxRequestBytes: number;
  readonly clock: Clock;
  misbehaved?(how: Misbehaviour): void;
}

const HANG_UP_MS = 1_000;

/**
 * One gRPC call on an HTTP/2 stream (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). Messages are handed to the network as they
 * are, without a copy: the same buffer may be on its way to a thousand clients.
 */
export class GrpcCall {
  readonly peer: Peer;
  readonly #stream: ServerStream;
  readonly #reader: MessageReader;
  readonly #clock: Clock;
  readonly #misbehaved: (how: Misbehaviour) => void;
  #begun = false;
  #open = true;
  #events: CallEvents | undefined;

  constructor({ stream, connection, maxRequestBytes, clock, misbehaved = () => {} }: CallOptions) {
    this.#clock = clock;
    this.#misbehaved = misbehaved;
    this.#stream = stream;
    this.#reader = new MessageReader(maxRequestBytes);
    this.peer = { ...connection, header: (name) => stream.head.get(name) };
  }

  /** Starts to read. A throw of the listener ends this call alone. */
  listen(events: CallEvents): void {
    this.#events = events;
    if (!this.#open) events.ended();
    this.#stream.listen({
      content: (bytes) => this.#take(bytes, events),
      finished: () => {
        if (this.#open) events.finished();
      },
      closed: () => this.#end(),
    });
  }

  /** Sends the one message of a call that has no other, and ends it: all of it in one write. */
  answer(message: Uint8Array): void {
    this.#stream.together(() => {
      this.send([message], () => {});
      this.close(GRPC_STATUS.OK, "");
    });
  }

  /** Says that the call is taken, where nothing was said on it yet. */
  begin(): void {
    if (!this.#open || this.#begun) return;
    this.#begun = true;
    this.#stream.respond(responseHead(this.#clock.now()));
  }

  /** Queues a message; `flushed` is called when the network has taken all of it. */
  send(message: MessageBytes, flushed: () => void): void {
    if (!this.#open) return;
    const small = smallMessage(message);
    this.#stream.together(() => {
      this.begin();
      this.#stream.write(small === undefined ? [prefixOf(message), ...message] : [small], flushed);
    });
  }

  /** Ends the call with a status, after what was queued. */
  close(status: GrpcStatus, reason: string): void {
    if (!this.#open) return;
    const trailers = statusBlock(status, reason);
    const block = this.#begun ? trailers : Buffer.concat([responseHead(this.#clock.now()), trailers]);
    this.#stream.end(block, () => hangUp(this.#stream, this.#clock));
    this.#end();
  }

  /** Reads no more: the client may send what its window allows, and then has to wait. */
  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    if (this.#open) this.#stream.resume();
  }

  #take(bytes: Buffer, events: CallEvents): void {
    if (!this.#open) return;
    try {
      const fault = this.#reader.take(bytes, (message) => {
        if (this.#open) events.message(message);
      });
      if (fault === undefined) return;
      this.#misbehaved("message");
      this.close(fault.status, fault.reason);
    } catch (error) {
      this.close(GRPC_STATUS.INTERNAL, messageOf(error));
    }
  }

  #end(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#events?.ended();
  }
}

/**
 * Resets a stream whose client has been told the end and leaves its own side open: it no longer counts, but would stay. Clients that behave are
 * gone by then; a reset sent at once would overtake the status.
 */
function hangUp(stream: ServerStream, clock: Clock): void {
  stream.resume();
  clock.after(HANG_UP_MS, () => stream.reset(HTTP2_ERROR.NO_ERROR));
}

const OK = headerBlock([["grpc-status", String(GRPC_STATUS.OK)]]);

function statusBlock(status: GrpcStatus, reason: string): Buffer {
  if (status === GRPC_STATUS.OK && reason === "") return OK;
  const message = percentEncoded(reason.slice(0, 2_000).toWellFormed());
  return headerBlock([["grpc-status", String(status)], ...(message === "" ? [] : [["grpc-message", message] as const])]);
}

/** Messages up to this size are put together for all streams they go to: what each stream would do with several buffers costs more than one copy. */
const SMALL_BYTES = 16 * 1024;
const smallMessages = new WeakMap<MessageBytes, Buffer>();

/** A small message with its prefix, in one buffer; the same for the same message. */
function smallMessage(message: MessageBytes): Buffer | undefined {
  const known = smallMessages.get(message);
  if (known !== undefined) return known;
  if (messageSize(message) > SMALL_BYTES) return undefined;
  const whole = Buffer.concat([prefixOf(message), ...message]);
  smallMessages.set(message, whole);
  return whole;
}

function prefixOf(message: MessageBytes): Buffer {
  const prefix = Buffer.allocUnsafe(MESSAGE_PREFIX_BYTES);
  prefix[0] = 0;
  prefix.writeUInt32BE(messageSize(message), 1);
  return prefix;
}

/** As gRPC has it: what is not printable ASCII, and the percent sign. Clients differ in what else they would decode. */
const percentEncoded = (text: string): string => text.replaceAll(/[^ -$&-~]+/g, encodeURIComponent);
