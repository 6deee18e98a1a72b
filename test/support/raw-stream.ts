import { connect, type Socket } from "node:net";
import { DELTA_METHOD } from "../../src/wire/grpc-server.ts";
import { FRAME, FRAME_FLAG, FRAME_HEAD, headersFrame, http2Frame, PREFACE, settingsFrame } from "./http2-frames.ts";

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
      Buffer.concat([PREFACE, settingsFrame(), headersFrame(1, REQUEST_HEADERS), http2Frame({ type: FRAME.data, stream: 1 }, message)]),
    );
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= FRAME_HEAD && bytes.length >= FRAME_HEAD + bytes.readUIntBE(0, 3)) {
      const end = FRAME_HEAD + bytes.readUIntBE(0, 3);
      const [type, flags] = [bytes[3], bytes[4] ?? 0];
      const isAsked = (flags & FRAME_FLAG.ack) === 0;
      if (type === FRAME.data) this.messages += 1;
      if (type === FRAME.settings && isAsked) this.#socket.write(http2Frame({ type, flags: FRAME_FLAG.ack }));
      if (type === FRAME.ping && isAsked) this.#socket.write(http2Frame({ type, flags: FRAME_FLAG.ack }, bytes.subarray(FRAME_HEAD, end)));
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    this.#changed();
  }
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
