import { connect, type Socket } from "node:net";
import { DELTA_METHOD } from "../../src/wire/grpc-server.ts";

const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const PING = 6;
const ACK = 1;
const END_HEADERS = 4;
const HEAD = 9;

/** A delta stream on a connection of its own, with as little as HTTP/2 asks for: ten thousand of them cost a test little. */
export class RawStream {
  readonly #socket: Socket;
  readonly #changed: () => void;
  #rest: Buffer = Buffer.alloc(0);
  /** Frames of data that came. */
  messages = 0;
  isOver = false;

  /** `changed` is called whenever something came, or the connection ended. */
  constructor(options: { readonly port: number; readonly from: string; readonly request: Uint8Array; changed(): void }) {
    this.#changed = options.changed;
    this.#socket = connect({ port: options.port, host: "127.0.0.1", localAddress: options.from });
    this.#socket.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      this.isOver = true;
      this.#changed();
    });
    const message = Buffer.alloc(5 + options.request.length);
    message.writeUInt32BE(options.request.length, 1);
    message.set(options.request, 5);
    this.#socket.write(
      Buffer.concat([
        Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        frame(SETTINGS, 0, 0, Buffer.alloc(0)),
        frame(HEADERS, END_HEADERS, 1, REQUEST_HEADERS),
        frame(DATA, 0, 1, message),
      ]),
    );
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= HEAD && bytes.length >= HEAD + bytes.readUIntBE(0, 3)) {
      const end = HEAD + bytes.readUIntBE(0, 3);
      const [type, flags] = [bytes[3], bytes[4] ?? 0];
      if (type === DATA) this.messages += 1;
      if (type === SETTINGS && (flags & ACK) === 0) this.#socket.write(frame(SETTINGS, ACK, 0, Buffer.alloc(0)));
      if (type === PING && (flags & ACK) === 0) this.#socket.write(frame(PING, ACK, 0, bytes.subarray(HEAD, end)));
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    this.#changed();
  }
}

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const literal = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);

/** In the numbers of HPACK's static table, nothing compressed and nothing to be remembered. */
const REQUEST_HEADERS = Buffer.concat([
  Buffer.from([0x83, 0x86]), // :method POST, :scheme http
  Buffer.from([0x04]),
  literal(DELTA_METHOD),
  Buffer.from([0x01]),
  literal("istiod"),
  Buffer.from([0x0f, 0x10]), // content-type
  literal("application/grpc"),
  Buffer.from([0x00]),
  literal("te"),
  literal("trailers"),
]);
