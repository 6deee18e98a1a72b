import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";

export interface GrpcStreamOptions {
  readonly port: number;
  readonly path: string;
  message(bytes: Buffer): void;
  ended(reason: string): void;
}

/** Windows of Envoy's upstream connections: what they hold back and when decides how a server sends. */
const STREAM_WINDOW = 16 * 1024 * 1024;
const CONNECTION_WINDOW = 24 * 1024 * 1024;
const PREFIX = 5;

/** One gRPC call on a connection of its own, with nothing between the socket and the bytes of a message. */
export class GrpcStream {
  readonly #session: ClientHttp2Session;
  readonly #stream: ClientHttp2Stream;
  readonly #options: GrpcStreamOptions;
  #chunks: Buffer[] = [];
  #size = 0;
  #over = false;

  constructor(options: GrpcStreamOptions) {
    this.#options = options;
    this.#session = connect(`http://127.0.0.1:${options.port}`, { settings: { initialWindowSize: STREAM_WINDOW, enablePush: false } });
    this.#session.once("connect", () => this.#session.setLocalWindowSize(CONNECTION_WINDOW));
    this.#session.on("error", (error) => this.#end(error.message));
    this.#stream = this.#session.request({ ":method": "POST", ":path": options.path, "content-type": "application/grpc", te: "trailers" });
    this.#stream.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#stream.on("trailers", (headers) => this.#end(`status ${headers["grpc-status"]}: ${headers["grpc-message"] ?? ""}`));
    this.#stream.on("error", (error) => this.#end(error.message));
    this.#stream.on("close", () => this.#end("closed"));
  }

  send(message: Buffer): void {
    const prefix = Buffer.alloc(PREFIX);
    prefix.writeUInt32BE(message.length, 1);
    this.#stream.write(Buffer.concat([prefix, message]));
  }

  close(): void {
    this.#over = true;
    this.#session.destroy();
  }

  #end(reason: string): void {
    if (this.#over) return;
    this.close();
    this.#options.ended(reason);
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    for (let length = this.#nextLength(); length !== undefined && this.#size >= PREFIX + length; length = this.#nextLength()) {
      const whole = this.#joined();
      const rest = whole.subarray(PREFIX + length);
      this.#chunks = rest.length === 0 ? [] : [rest];
      this.#size = rest.length;
      this.#options.message(whole.subarray(PREFIX, PREFIX + length));
    }
  }

  #nextLength(): number | undefined {
    if (this.#size < PREFIX) return undefined;
    const [first] = this.#chunks;
    const head = first !== undefined && first.length >= PREFIX ? first : this.#joined();
    return head.readUInt32BE(1);
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (first === undefined || this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? Buffer.alloc(0);
  }
}
