import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, getCACertificates, type TLSSocket } from "node:tls";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Secret } from "../base/secret.ts";
import { tlsFaultOf } from "../base/tls-fault.ts";
import { GRPC_STATUS } from "./grpc-status.ts";
import { MESSAGE_PREFIX_BYTES, MessageReader } from "./message-reader.ts";

/** A call ended otherwise than well. `status` is gRPC's code; a connection that could not be had or broke counts as UNAVAILABLE. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface ChannelTls {
  /** Roots in PEM; undefined means those of the platform. */
  readonly roots: string | undefined;
  /** The name that the server's certificate must be for. */
  readonly serverName: string;
  /** What we show of ourselves. */
  readonly client?: { readonly chain: string; readonly key: Secret<string> };
}

export interface ChannelOptions {
  /** A host and port, and the address to call from where that matters; or the path of a Unix socket. */
  readonly to: { readonly host: string; readonly port: number; readonly localAddress?: string } | { readonly path: string };
  readonly tls?: ChannelTls;
  readonly clock: Clock;
}

/** Reads what comes on a stream. `ended` comes once, last; without an error the server said OK. */
export interface ClientCallEvents {
  /** The server has taken the call, though it may have nothing to say: its headers came. Before any message, and not for a call that is refused. */
  taken?(): void;
  message(bytes: Buffer): void;
  ended(error: GrpcError | undefined): void;
}

/** A stream that the client opened. */
export interface ClientCall {
  send(message: Uint8Array): void;
  /** Ends it at once, without a further event. */
  cancel(): void;
}

/** One connection to a gRPC server. */
export interface GrpcChannel {
  /** Sends one message and gives the answer; rejects with `GrpcError`. */
  unary(path: string, message: Uint8Array, options: { readonly headers?: CallHeaders; readonly timeoutMs: number }): Promise<Buffer>;
  open(path: string, headers: CallHeaders, events: ClientCallEvents): ClientCall;
  close(): void;
  readonly closed: Promise<void>;
}

export type CallHeaders = Readonly<Record<string, string>>;

const CONNECT_MS = 5_000;
/** The server asks by itself now and then; this finds a peer that went without a word. */
const PING_MS = 30_000;
const PING_TIMEOUT_MS = 10_000;
const LARGEST_MESSAGE = 2 ** 31 - 1;
/** A configuration of some MB comes in a few round trips, not in hundreds. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** Connects; rejects with `GrpcError` where nobody answers, or somebody who cannot show that he is who we called. */
export async function openGrpcChannel(options: ChannelOptions): Promise<GrpcChannel> {
  const session = await openSession(options);
  const closed = new Promise<void>((resolve) => session.once("close", () => resolve()));
  const stopPinging = keepAlive(session, options.clock);
  void closed.then(stopPinging);
  return {
    closed,
    close: () => session.destroy(),
    open: (path, headers, events) => openCall(session, { path, headers, events }),
    unary: (path, message, { headers = {}, timeoutMs }) =>
      new Promise((resolve, reject) => {
        let answer: Buffer | undefined;
        const call = openCall(session, {
          path,
          headers,
          events: {
            message(bytes) {
              answer ??= bytes;
            },
            ended(error) {
              cancel();
              if (error !== undefined) reject(error);
              else if (answer === undefined) reject(new GrpcError(GRPC_STATUS.INTERNAL, "the server gave no answer"));
              else resolve(answer);
            },
          },
        });
        const cancel = options.clock.after(timeoutMs, () => {
          call.cancel();
          reject(new GrpcError(GRPC_STATUS.DEADLINE_EXCEEDED, `no answer after ${timeoutMs} ms`));
        });
        call.send(message);
        call.finish();
      }),
  };
}

function openSession({ to, tls, clock }: ChannelOptions): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const socket = openSocket(to, tls);
    const fail = (error: unknown): void => {
      cancel();
      socket.destroy();
      reject(new GrpcError(GRPC_STATUS.UNAVAILABLE, tlsFaultOf(error)));
    };
    const cancel = clock.after(CONNECT_MS, () => fail(`no connection after ${CONNECT_MS} ms`));
    socket.on("error", fail);
    socket.once(tls === undefined ? "connect" : "secureConnect", () => {
      cancel();
      const session = connectHttp2("http://grpc", {
        createConnection: () => socket,
        settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
      });
      session.on("error", () => session.destroy());
      session.once("connect", () => session.setLocalWindowSize(WINDOW_BYTES));
      resolve(session);
    });
  });
}

function openSocket(to: ChannelOptions["to"], tls: ChannelTls | undefined): Socket | TLSSocket {
  if (tls === undefined) return "path" in to ? connectTcp(to.path) : connectTcp({ ...to, noDelay: true });
  return connectTls({
    ...to,
    servername: tls.serverName,
    ca: tls.roots ?? getCACertificates("system"),
    allowPartialTrustChain: true, // What we are told to trust need not have signed itself.
    ALPNProtocols: ["h2"],
    minVersion: "TLSv1.2",
    ...(tls.client !== undefined && { cert: tls.client.chain, key: tls.client.key.reveal() }),
  });
}

function keepAlive(session: ClientHttp2Session, clock: Clock): () => void {
  let cancel: () => void = () => {};
  const next = (): void => {
    cancel = clock.after(PING_MS, () => {
      if (session.destroyed) return;
      cancel = clock.after(PING_TIMEOUT_MS, () => session.destroy());
      session.ping((error) => {
        cancel();
        if (error === null) next();
      });
    });
  };
  next();
  return () => cancel();
}

interface CallParts {
  readonly path: string;
  readonly headers: CallHeaders;
  readonly events: ClientCallEvents;
}

function openCall(session: ClientHttp2Session, { path, headers, events }: CallParts): ClientCall & { finish(): void } {
  let open = true;
  const end = (error: GrpcError | undefined): void => {
    if (!open) return;
    open = false;
    events.ended(error);
  };
  if (session.destroyed || session.closed) {
    queueMicrotask(() => end(new GrpcError(GRPC_STATUS.UNAVAILABLE, "the connection is closed")));
    return { send() {}, finish() {}, cancel: () => (open = false) };
  }
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  follow(stream, { end, taken: () => open && events.taken?.(), message: (bytes) => open && events.message(bytes) });
  return {
    send: (message) => {
      if (open) stream.write(framed(message));
    },
    finish: () => stream.end(),
    cancel() {
      open = false;
      stream.close(8);
    },
  };
}

interface Following {
  taken(): void;
  end(error: GrpcError | undefined): void;
  message(bytes: Buffer): void;
}

function follow(stream: ClientHttp2Stream, { end, taken, message }: Following): void {
  const reader = new MessageReader(LARGEST_MESSAGE);
  let verdict: GrpcError | "ok" | undefined;
  stream.on("response", (headers) => {
    if (headers[":status"] !== 200)
      verdict = new GrpcError(GRPC_STATUS.UNAVAILABLE, `the server answered ${headers[":status"]} instead of gRPC`);
    else if (headers["grpc-status"] !== undefined) verdict = verdictOf(headers);
    else taken();
  });
  stream.on("trailers", (trailers) => {
    verdict ??= verdictOf(trailers);
  });
  stream.on("data", (bytes: Buffer) => {
    const fault = takeIn(reader, bytes, message);
    if (fault === undefined) return;
    verdict ??= fault;
    stream.close();
  });
  stream.on("error", (error) => {
    verdict ??= new GrpcError(GRPC_STATUS.UNAVAILABLE, messageOf(error));
  });
  // A server that has said how the call ended says nothing more; it may let the stream stand for a while, for our part of it.
  stream.on("end", () => {
    if (verdict === undefined) return;
    end(verdict === "ok" ? undefined : verdict);
    stream.close();
  });
  stream.on("close", () => {
    const lost = new GrpcError(GRPC_STATUS.UNAVAILABLE, "the connection was lost");
    end(verdict === "ok" ? undefined : (verdict ?? lost));
  });
}

/** A reader that cannot make sense of a message ends its call, not the process. */
function takeIn(reader: MessageReader, bytes: Buffer, message: (bytes: Buffer) => void): GrpcError | undefined {
  try {
    const fault = reader.take(bytes, message);
    return fault && new GrpcError(fault.status, fault.reason);
  } catch (error) {
    return new GrpcError(GRPC_STATUS.INTERNAL, messageOf(error));
  }
}

function verdictOf(headers: IncomingHttpHeaders): GrpcError | "ok" {
  const status = Number(headers["grpc-status"] ?? GRPC_STATUS.INTERNAL);
  if (status === GRPC_STATUS.OK) return "ok";
  const text = String(headers["grpc-message"] ?? `status ${status}`);
  return new GrpcError(status, decoded(text));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(MESSAGE_PREFIX_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, MESSAGE_PREFIX_BYTES);
  return frame;
}
