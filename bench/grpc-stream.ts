import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";

export interface GrpcStreamOptions {
  readonly port: number;
  readonly path: string;
  /** Bytes of a stream that may be on their way unread; Envoy's unless said otherwise. */
  readonly window?: number;
  /** Over TLS, with a token; in plaintext and without a name where left out. */
  readonly secure?: SecureCall;
  message(bytes: Buffer): void;
  ended(reason: string): void;
}

/** How a server is verified, and what it is shown. */
export interface SecureCall {
  readonly roots: string;
  readonly serverName: string;
  readonly token: string;
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
    const { window = STREAM_WINDOW, secure } = options;
    const settings = { initialWindowSize: window, enablePush: false };
    this.#session =
      secure === undefined
        ? connect(`http://127.0.0.1:${options.port}`, { settings })
        : connect(`https://127.0.0.1:${options.port}`, { settings, ca: secure.roots, servername: secure.serverName });
    this.#session.once("connect", () => this.#session.setLocalWindowSize(Math.ceil((window * CONNECTION_WINDOW) / STREAM_WINDOW)));
    this.#session.on("error", (error) => this.#end(error.message));
    this.#stream = this.#session.request({
      ...{ ":method": "POST", ":path": options.path, "content-type": "application/grpc", te: "trailers" },
      ...(secure !== undefined && { authorization: `Bearer ${secure.token}` }),
    });
    this.#stream.on("data", (chunk: Buffer) => this.#take(chunk));
    const status = (headers: IncomingHttpHeaders): void => {
      if (headers["grpc-status"] !== undefined) this.#end(`status ${headers["grpc-status"]}: ${headers["grpc-message"] ?? ""}`);
    };
    this.#stream.on("response", status);
    this.#stream.on("trailers", status);
    this.#stream.on("error", (error) => this.#end(error.message));
    this.#stream.on("close", () => this.#end("closed"));
  }

  send(message: Buffer): void {
    const prefix = Buffer.alloc(PREFIX);
    prefix.writeUInt32BE(message.length, 1);
    this.#stream.write(Buffer.concat([prefix, message]));
  }

  /** Reads no more, as a process that hangs. */
  stall(): void {
    this.#stream.pause();
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
