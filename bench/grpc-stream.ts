import { connect, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import {
  FLAG,
  FRAME,
  type FrameHead,
  frameOf,
  headerFrames,
  INITIAL_WINDOW,
  MAX_FRAME_BYTES,
  pingFrame,
  SETTING,
  SETTINGS_ACK,
  settingsFrame,
  windowUpdateFrame,
} from "../src/wire/http2/frame.ts";
import { FrameReader } from "../src/wire/http2/frame-reader.ts";
import { HeaderDecoder, headerBlock } from "../src/wire/http2/hpack.ts";

export interface GrpcStreamOptions {
  readonly port: number;
  readonly path: string;
  /** Bytes of a stream that may be on their way unread; Envoy's unless said otherwise. */
  readonly window?: number;
  /** Over TLS, with a token; in plaintext and without a name where left out. */
  readonly secure?: SecureCall;
  /** The server has taken the call. */
  opened?(): void;
  /** Some of what the server says, messages with their prefixes, as the network brings it. Gone when this returns. */
  content(bytes: Buffer): void;
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
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const CALL = 1;
const PREFIX = 5;
/** What all sockets are read into: what is read is taken in before the next is. */
const READ_BUFFER = Buffer.allocUnsafeSlow(512 * 1024);

/**
 * One gRPC call on a connection of its own. Nothing is between the socket and what it brings: no stream of Node's, no buffer of its own, and content is passed
 * on in the pieces in which it was read, so that a client that knows what comes need not touch it.
 */
export class GrpcStream {
  readonly #socket: Socket;
  readonly #options: GrpcStreamOptions;
  readonly #window: number;
  readonly #frames: FrameReader;
  readonly #headers = new HeaderDecoder();
  /** Requests, or what is left of them, that the server has no room for yet. */
  #unsent: Buffer[] = [];
  #room = { call: INITIAL_WINDOW, connection: INITIAL_WINDOW };
  #initialRoom = INITIAL_WINDOW;
  /** Content that came since the server was last told that there is room again. */
  #taken = 0;
  #deaf = false;
  #over = false;

  constructor(options: GrpcStreamOptions) {
    this.#options = options;
    const { port, window = STREAM_WINDOW, secure } = options;
    this.#window = window;
    this.#frames = new FrameReader({
      data: (_, content) => this.#content(content),
      padding: (_, bytes) => this.#grant(bytes),
      headers: (_, block) => this.#status(block),
      frame: (head, content) => this.#control(head, content),
      streamFault: (fault) => this.#end(fault.message),
    });
    // It is a server's, to which clients say this first.
    this.#frames.take(PREFACE);
    this.#socket = secure === undefined ? this.#connect(port) : this.#connectSecurely(port, secure);
    this.#socket.on("error", (error) => this.#end(error.message));
    this.#socket.on("close", () => this.#end("closed"));
    this.#socket.write(greeting(options, window));
  }

  send(message: Buffer): void {
    const prefix = Buffer.alloc(PREFIX);
    prefix.writeUInt32BE(message.length, 1);
    this.#unsent.push(Buffer.concat([prefix, message]));
    this.#pump();
  }

  /** Takes in no more, as a process that hangs: the server may send what the window holds. */
  stall(): void {
    this.#deaf = true;
  }

  /** Lets the server send some bytes more although nothing else is taken in. */
  trickle(bytes: number): void {
    if (!this.#over) this.#socket.write(Buffer.concat([windowUpdateFrame(0, bytes), windowUpdateFrame(CALL, bytes)]));
  }

  close(): void {
    this.#over = true;
    this.#socket.destroy();
  }

  #connect(port: number): Socket {
    const callback = (size: number): boolean => {
      this.#read(READ_BUFFER.subarray(0, size));
      return true;
    };
    return connect({ port, host: "127.0.0.1", noDelay: true, onread: { buffer: READ_BUFFER, callback } });
  }

  #connectSecurely(port: number, { roots, serverName }: SecureCall): Socket {
    const socket = connectSecurely({ port, host: "127.0.0.1", ca: roots, servername: serverName, ALPNProtocols: ["h2"] });
    socket.setNoDelay(true);
    return socket.on("data", (bytes: Buffer) => this.#read(bytes));
  }

  #read(bytes: Buffer): void {
    if (this.#over) return;
    try {
      this.#frames.take(bytes);
    } catch (error) {
      this.#end(String(error));
    }
  }

  #end(reason: string): void {
    if (this.#over) return;
    this.close();
    this.#options.ended(reason);
  }

  #content(content: Buffer): void {
    if (this.#deaf || this.#over) return;
    this.#grant(content.length);
    this.#options.content(content);
  }

  /** Room is given back when half of it is used up, as Envoy does. */
  #grant(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken < this.#window / 2) return;
    this.trickle(this.#taken);
    this.#taken = 0;
  }

  #status(block: Buffer): void {
    const headers = new Map(this.#headers.decode(block).map(({ name, value }) => [name, value]));
    const status = headers.get("grpc-status");
    if (status !== undefined) this.#end(`status ${status}: ${headers.get("grpc-message") ?? ""}`);
    else if (headers.get(":status") !== "200") this.#end(`HTTP status ${headers.get(":status")}`);
    else this.#options.opened?.();
  }

  #control({ type, flags, stream }: FrameHead, content: Buffer): void {
    if (type === FRAME.SETTINGS && (flags & FLAG.ACK) === 0) this.#settings(content);
    else if (type === FRAME.PING && (flags & FLAG.ACK) === 0) this.#socket.write(pingFrame(FLAG.ACK, content));
    else if (type === FRAME.WINDOW_UPDATE) {
      this.#room[stream === 0 ? "connection" : "call"] += content.readUInt32BE(0);
      this.#pump();
    } else if (type === FRAME.RST_STREAM) this.#end(`reset with code ${content.readUInt32BE(0)}`);
    else if (type === FRAME.GOAWAY && content.readUInt32BE(4) !== 0) this.#end(`sent away with code ${content.readUInt32BE(4)}`);
  }

  #settings(content: Buffer): void {
    for (let at = 0; at + 6 <= content.length; at += 6) {
      if (content.readUInt16BE(at) !== SETTING.INITIAL_WINDOW_SIZE) continue;
      const room = content.readUInt32BE(at + 2);
      this.#room.call += room - this.#initialRoom;
      this.#initialRoom = room;
    }
    this.#socket.write(SETTINGS_ACK);
    this.#pump();
  }

  #pump(): void {
    if (this.#over) return;
    const frames: Buffer[] = [];
    for (let next = this.#unsent.shift(); next !== undefined; next = this.#unsent.shift()) {
      const size = Math.min(next.length, MAX_FRAME_BYTES, this.#room.call, this.#room.connection);
      if (size < next.length) this.#unsent.unshift(next.subarray(Math.max(size, 0)));
      if (size <= 0) break;
      this.#room.call -= size;
      this.#room.connection -= size;
      frames.push(frameOf({ type: FRAME.DATA, flags: 0, stream: CALL }, next.subarray(0, size)));
    }
    if (frames.length > 0) this.#socket.write(frames.length === 1 && frames[0] !== undefined ? frames[0] : Buffer.concat(frames));
  }
}

/** What a connection begins with, up to the call. */
function greeting({ path, port, secure }: GrpcStreamOptions, window: number): Buffer {
  const block = headerBlock([
    [":method", "POST"],
    [":scheme", secure === undefined ? "http" : "https"],
    [":path", path],
    [":authority", `127.0.0.1:${port}`],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...(secure === undefined ? [] : [["authorization", `Bearer ${secure.token}`] as const]),
  ]);
  const whole = Math.ceil((window * CONNECTION_WINDOW) / STREAM_WINDOW);
  return Buffer.concat([
    PREFACE,
    settingsFrame([
      [SETTING.ENABLE_PUSH, 0],
      [SETTING.INITIAL_WINDOW_SIZE, window],
    ]),
    ...(whole > INITIAL_WINDOW ? [windowUpdateFrame(0, whole - INITIAL_WINDOW)] : []),
    headerFrames(CALL, block, false),
  ]);
}
