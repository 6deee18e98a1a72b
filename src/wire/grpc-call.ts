import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Peer } from "./discovery-stream.ts";
import { GRPC_STATUS, type GrpcStatus } from "./grpc-status.ts";
import { MESSAGE_PREFIX_BYTES, MessageReader } from "./message-reader.ts";
import type { Misbehaviour } from "./misbehaviour.ts";
import { PacedWriter, writeTogether } from "./paced-writer.ts";
import { type MessageBytes, messageSize } from "./shared-blocks.ts";
import type { SharedPace } from "./shared-pace.ts";

/** What happens on a call. `ended` comes once, last. */
export interface CallEvents {
  message(bytes: Buffer): void;
  /** The client has said all it will say. */
  finished(): void;
  ended(): void;
}

export interface CallOptions {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  /** Who is at the other end of the connection. */
  readonly connection: Omit<Peer, "header">;
  readonly maxRequestBytes: number;
  readonly clock: Clock;
  /** How fast large messages may go; given where the connection is over TLS. */
  readonly pace?: SharedPace;
  misbehaved?(how: Misbehaviour): void;
}

const OK: OutgoingHttpHeaders = { "grpc-status": String(GRPC_STATUS.OK) };
const HANG_UP_MS = 1_000;

/** As a list, which costs less for each call than an object, whose names are judged and put in order. Copied, since Node adds the date to it. */
const HEADERS: readonly string[] = [":status", "200", "content-type", "application/grpc", "grpc-accept-encoding", "identity"];
const WITH_TRAILERS = { waitForTrailers: true };

/**
 * One gRPC call on an HTTP/2 stream (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). Messages are handed to the network as they
 * are, without a copy: the same buffer may be on its way to a thousand clients.
 */
export class GrpcCall {
  readonly peer: Peer;
  readonly #stream: ServerHttp2Stream;
  readonly #reader: MessageReader;
  readonly #clock: Clock;
  readonly #misbehaved: (how: Misbehaviour) => void;
  readonly #paced: PacedWriter | undefined;
  #status: OutgoingHttpHeaders | undefined;
  #open = true;
  /** The client has said all it will say. */
  #heard = false;
  #events: CallEvents | undefined;

  constructor({ stream, headers, connection, maxRequestBytes, clock, pace, misbehaved = () => {} }: CallOptions) {
    this.#clock = clock;
    this.#misbehaved = misbehaved;
    this.#paced = pace && new PacedWriter(stream, pace);
    this.#stream = stream;
    this.#reader = new MessageReader(maxRequestBytes);
    this.peer = { ...connection, header: (name) => first(headers[name]) };
    stream.on("error", () => this.#end()); // Resets and broken connections; without a listener they would end the process.
    stream.on("aborted", () => this.#end());
    stream.on("close", () => this.#end());
    stream.on("wantTrailers", () => {
      stream.sendTrailers(this.#status ?? OK);
      if (!this.#heard) hangUp(stream, clock);
    });
  }

  /** Starts to read. A throw of the listener ends this call alone. */
  listen(events: CallEvents): void {
    this.#events = events;
    if (!this.#open) {
      events.ended();
      return;
    }
    this.#stream.on("data", (bytes: Buffer) => this.#take(bytes, events));
    this.#stream.on("end", () => {
      this.#heard = true;
      if (this.#open) events.finished();
    });
  }

  /** Sends the one message of a call that has no other, and ends it: all of it in one write. */
  answer(message: Uint8Array): void {
    if (!this.#open) return;
    this.#stream.respond([...HEADERS], WITH_TRAILERS);
    this.#stream.end(Buffer.concat([prefixOf([message]), message]));
    this.#end();
  }

  /** Says that the call is taken, where nothing was said on it yet. */
  begin(): void {
    if (this.#open && !this.#stream.headersSent) this.#stream.respond([...HEADERS], WITH_TRAILERS);
  }

  /** Queues a message; `flushed` is called when the network has taken all of it. */
  send(message: MessageBytes, flushed: () => void): void {
    if (!this.#open) return;
    this.begin();
    const stream = this.#stream;
    const small = smallMessage(message);
    const buffers = small === undefined ? [prefixOf(message), ...message] : [small];
    if (this.#paced === undefined) writeTogether(stream, buffers, flushed);
    else this.#paced.write(buffers, flushed);
  }

  /** Ends the call with a status, after what was queued. */
  close(status: GrpcStatus, reason: string): void {
    if (!this.#open) return;
    const stream = this.#stream;
    const trailers = statusOf(status, reason);
    if (stream.headersSent) {
      this.#status = trailers;
      if (this.#paced === undefined) stream.end();
      else this.#paced.end();
    } else if (!stream.destroyed) {
      stream.respond([...HEADERS, ...Object.entries(trailers).flatMap(([name, value]) => [name, String(value)])], { endStream: true });
      hangUp(stream, this.#clock);
    }
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
function hangUp(stream: ServerHttp2Stream, clock: Clock): void {
  stream.resume();
  const cancel = clock.after(HANG_UP_MS, () => stream.close(constants.NGHTTP2_NO_ERROR));
  stream.once("close", cancel);
}

function statusOf(status: GrpcStatus, reason: string): OutgoingHttpHeaders {
  return {
    "grpc-status": String(status),
    ...(reason !== "" && { "grpc-message": percentEncoded(reason.slice(0, 2_000).toWellFormed()) }),
  };
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

const first = (value: string | readonly string[] | undefined): string | undefined => (typeof value === "object" ? value[0] : value);

/** As gRPC has it: what is not printable ASCII, and the percent sign. Clients differ in what else they would decode. */
const percentEncoded = (text: string): string => text.replaceAll(/[^ -$&-~]+/g, encodeURIComponent);
