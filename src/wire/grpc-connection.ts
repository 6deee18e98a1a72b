import { type IncomingHttpHeaders, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { Peer } from "./discovery-stream.ts";
import type { Misbehaviour } from "./misbehaviour.ts";

export interface ConnectionSettings {
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** 0 is for ever. */
  readonly maxConnectionAgeMs: number;
  readonly maxStreamsPerConnection: number;
}

export interface ConnectionOptions {
  readonly settings: ConnectionSettings;
  readonly clock: Clock;
  opened(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
  /** Called once. */
  closed(): void;
  misbehaved(how: Misbehaviour): void;
}

/** Memory of one connection beyond which it opens no more streams. What is queued for it counts, so it is more than all streams together may queue. */
const MAX_SESSION_MB = 128;
const AGE_GRACE_MS = 10_000;

/** One client's HTTP/2 connection. Floods of resets, pings, settings and bad frames end it: those limits are Node's own. */
export class GrpcConnection {
  readonly peer: Omit<Peer, "header">;
  /** Whether it is over TLS. */
  readonly encrypted: boolean;
  readonly #socket: Socket;
  readonly #session: ServerHttp2Session;
  readonly #clock: Clock;
  readonly #timers = new Set<() => void>();
  readonly #closed = Promise.withResolvers<void>();
  /** Calls that are open, and whether there was one since the last look. */
  readonly #calls = { open: 0, any: false, ever: false };

  constructor(socket: Socket, { settings, clock, opened, closed, misbehaved }: ConnectionOptions) {
    this.#socket = socket;
    this.#clock = clock;
    this.encrypted = socket instanceof TLSSocket;
    this.peer = { address: addressOf(socket), ...certificateOf(socket) };
    this.#session = performServerHandshake(socket, {
      maxSessionMemory: MAX_SESSION_MB,
      settings: { maxConcurrentStreams: settings.maxStreamsPerConnection, enablePush: false },
    });
    this.#session.on("stream", (stream, headers) => {
      this.#noteCall(stream);
      opened(stream, headers);
    });
    this.#session.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code?.startsWith("ERR_HTTP2") === true) misbehaved("http2");
      this.cut();
    });
    socket.on("error", () => this.cut());
    this.#session.once("close", () => {
      for (const cancel of this.#timers) cancel();
      this.#closed.resolve();
      closed();
    });
    if (settings.keepaliveMs > 0) this.#keepAlive(settings, misbehaved);
    if (settings.maxConnectionAgeMs > 0) this.#after(settings.maxConnectionAgeMs, () => void this.retire(AGE_GRACE_MS));
  }

  /** Bytes the network has taken so far. */
  get written(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength;
  }

  /** Asks the client to go elsewhere, lets its calls finish for `ms`, then cuts it. Resolves when it is gone. */
  retire(ms: number): Promise<void> {
    if (!this.#session.closed) this.#session.close();
    this.#after(ms, () => this.cut());
    return this.#closed.promise;
  }

  /** Ends the connection without a word: a client that does not read cannot be told. */
  cut(): void {
    this.#session.destroy();
    this.#socket.destroy();
  }

  #noteCall(stream: ServerHttp2Stream): void {
    this.#calls.open += 1;
    this.#calls.any = true;
    this.#calls.ever = true;
    stream.once("close", () => {
      this.#calls.open -= 1;
    });
  }

  /**
   * Asks a client that has said nothing for a while whether it is there; one that is gone without a word would keep its streams for ever. One that has no call open,
   * and had none for a while, is let go: strangers could otherwise hold every connection there is without ever saying who they are.
   */
  #keepAlive(settings: ConnectionSettings, misbehaved: (how: Misbehaviour) => void): void {
    const { bytesRead } = this.#socket;
    this.#after(settings.keepaliveMs, () => {
      if (this.#session.destroyed) return; // It has said goodbye already.
      if (this.#calls.open === 0 && !this.#calls.any) {
        if (this.#calls.ever) void this.retire(AGE_GRACE_MS);
        else {
          misbehaved("silent");
          this.cut();
        }
        return;
      }
      this.#calls.any = false;
      if (this.#socket.bytesRead !== bytesRead) {
        this.#keepAlive(settings, misbehaved);
        return;
      }
      const stopWaiting = this.#after(settings.keepaliveTimeoutMs, () => this.cut());
      this.#session.ping((error) => {
        stopWaiting();
        if (error === null) this.#keepAlive(settings, misbehaved);
      });
    });
  }

  #after(ms: number, fn: () => void): () => void {
    const cancel = this.#clock.after(ms, () => {
      this.#timers.delete(cancel);
      fn();
    });
    this.#timers.add(cancel);
    return () => {
      this.#timers.delete(cancel);
      cancel();
    };
  }
}

/** A client on a Unix socket has no address. */
const addressOf = ({ remoteAddress, remotePort }: Socket): string =>
  remoteAddress === undefined ? "unix:" : `${remoteAddress}:${remotePort}`;

/** A certificate that leads to no root of ours is as good as none, but its owner is told. */
function certificateOf(socket: Socket): Pick<Peer, "certificate" | "certificateFault"> {
  const shown = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  if (!(socket instanceof TLSSocket) || shown === undefined) return { certificate: undefined };
  if (socket.authorized) return { certificate: shown.raw };
  return { certificate: undefined, certificateFault: String(socket.authorizationError) };
}
