import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Clock } from "../base/clock.ts";
import { nextTurn } from "../base/slice.ts";
import type { Peer } from "./discovery-stream.ts";
import { ServerSession } from "./http2/server-session.ts";
import type { ServerStream } from "./http2/server-stream.ts";
import type { Misbehaviour } from "./misbehaviour.ts";
import type { SharedPace } from "./shared-pace.ts";

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
  /** How fast large messages may go over TLS. */
  readonly pace: SharedPace;
  opened(stream: ServerStream): void;
  /** Called once. */
  closed(): void;
  misbehaved(how: Misbehaviour): void;
}

const AGE_GRACE_MS = 10_000;

/** One client's HTTP/2 connection. */
export class GrpcConnection {
  readonly peer: Omit<Peer, "header">;
  readonly #socket: Socket;
  readonly #session: ServerSession;
  readonly #clock: Clock;
  readonly #timers = new Set<() => void>();
  readonly #closed = Promise.withResolvers<void>();
  /** Whether there was a call since the last look, and at all. */
  readonly #calls = { any: false, ever: false };

  constructor(socket: Socket, { settings, clock, pace, opened, closed, misbehaved }: ConnectionOptions) {
    this.#socket = socket;
    this.#clock = clock;
    this.peer = { address: addressOf(socket), ...certificateOf(socket) };
    this.#session = new ServerSession(socket, {
      maxStreams: settings.maxStreamsPerConnection,
      clock,
      pace: socket instanceof TLSSocket ? pace : undefined,
      opened: (stream) => {
        this.#calls.any = true;
        this.#calls.ever = true;
        opened(stream);
      },
      failed: () => misbehaved("http2"),
      closed: () => {
        for (const cancel of this.#timers) cancel();
        this.#closed.resolve();
        closed();
      },
    });
    if (settings.keepaliveMs > 0) this.#keepAlive(settings, misbehaved);
    if (settings.maxConnectionAgeMs > 0) this.#after(settings.maxConnectionAgeMs, () => void this.retire(AGE_GRACE_MS));
  }

  /** Bytes the network has taken so far. */
  get written(): number {
    return this.#session.written;
  }

  /** Asks the client to go elsewhere, lets its calls finish for `ms`, then cuts it. Resolves when it is gone. */
  retire(ms: number): Promise<void> {
    this.#session.leave();
    this.#after(ms, () => this.cut());
    return this.#closed.promise;
  }

  /** Ends the connection without a word: a client that does not read cannot be told. */
  cut(): void {
    this.#socket.destroy();
  }

  /**
   * Asks a client that has said nothing for a while whether it is there; one that is gone without a word would keep its streams for ever. One that has no call open,
   * and had none for a while, is let go: strangers could otherwise hold every connection there is without ever saying who they are.
   */
  #keepAlive(settings: ConnectionSettings, misbehaved: (how: Misbehaviour) => void): void {
    const { bytesRead } = this.#socket;
    this.#after(settings.keepaliveMs, () => {
      if (this.#socket.destroyed) return; // It has said goodbye already.
      if (this.#session.streams === 0 && !this.#calls.any) {
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
      let answered = false;
      // Where this process stood still meanwhile, its timers are due before the answer is read that has long been there.
      const stopWaiting = this.#after(
        settings.keepaliveTimeoutMs,
        () =>
          void nextTurn().then(() => {
            if (!answered) this.cut();
          }),
      );
      this.#session.ping(() => {
        answered = true;
        stopWaiting();
        this.#keepAlive(settings, misbehaved);
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
