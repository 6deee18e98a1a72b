import type { Socket } from "node:net";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { CallRefusal } from "./call-refusal.ts";
import type { DiscoveryStream, DiscoveryStreamEvents, DiscoveryVariant, Peer } from "./discovery-stream.ts";
import { GrpcCall } from "./grpc-call.ts";
import { GrpcConnection } from "./grpc-connection.ts";
import { GRPC_STATUS } from "./grpc-status.ts";
import { HTTP2_ERROR } from "./http2/frame.ts";
import { headerBlock } from "./http2/hpack.ts";
import type { ServerStream } from "./http2/server-stream.ts";
import { type Listener, type OpenPort, openPort } from "./listener.ts";
import type { Misbehaviour } from "./misbehaviour.ts";
import { SharedPace } from "./shared-pace.ts";
import { serveTls, type TlsCredentials } from "./tls-listener.ts";
import { SECRET_TYPE } from "./type-urls.ts";

/** Limits and timings of a gRPC server; the defaults follow Istio's where Istio has the setting. */
export interface GrpcServerSettings {
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** 0 is for ever. */
  readonly maxConnectionAgeMs: number;
  readonly maxRequestBytes: number;
  /** The same for calls that are answered at once; a request for a certificate, the largest, has a quarter of the default. */
  readonly maxUnaryBytes: number;
  readonly maxStreamsPerConnection: number;
  readonly maxStreams: number;
  readonly maxConnections: number;
}

export const DEFAULT_GRPC_SETTINGS: GrpcServerSettings = {
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  maxConnectionAgeMs: 0,
  maxRequestBytes: 4 * 1024 * 1024,
  maxUnaryBytes: 64 * 1024,
  maxStreamsPerConnection: 100,
  maxStreams: 20_000,
  maxConnections: 20_000,
};

/** A method that takes one message and answers with one. A `CallRefusal` is answered with its status, any other throw with `INTERNAL`. */
export type UnaryMethod = (request: Uint8Array, peer: Peer) => Uint8Array | Promise<Uint8Array>;

export interface GrpcServerOptions {
  /** Called for each discovery stream; a stream beyond the limits is refused before. */
  accept(stream: DiscoveryStream): DiscoveryStreamEvents;
  /** What `grpc.health.v1.Health/Check` answers. */
  healthy(): boolean;
  readonly clock: Clock;
  readonly settings?: Partial<GrpcServerSettings>;
  /** Further discovery services on the same port by path (that of secrets, for example). */
  readonly discoveryPaths?: Readonly<Record<string, DiscoveryVariant>>;
  /** Further methods on the same port by path (the CA's, for example). */
  readonly methods?: Readonly<Record<string, UnaryMethod>>;
  /** Further methods with streams on which each message is answered with one, in order (reflection's, for example). */
  readonly dialogues?: Readonly<Record<string, UnaryMethod>>;
  /** A connection was ended, or a call refused, because of how the client behaves. */
  misbehaved?(how: Misbehaviour): void;
}

/** A gRPC server with the aggregated discovery service and health on it. */
export interface GrpcServer {
  /** Serves a port that is open, or binds `host:port` or `unix:path`; with TLS where credentials are given. Gives the port. May be called for several. */
  listen(at: string | OpenPort, tls?: TlsCredentials): Promise<number>;
  /** Stops accepting, lets calls finish for `ms`, then cuts them. */
  drain(ms: number): Promise<void>;
  /** Discovery streams open now. */
  readonly streams: number;
}

/** How long a call that is answered at once may take to say what it wants. */
const UNARY_MS = 10_000;

const DISCOVERY = "/envoy.service.discovery.v3.AggregatedDiscoveryService";
export const SOTW_METHOD = `${DISCOVERY}/StreamAggregatedResources`;
export const DELTA_METHOD = `${DISCOVERY}/DeltaAggregatedResources`;
const SECRETS = "/envoy.service.secret.v3.SecretDiscoveryService";
export const SECRETS_METHOD = `${SECRETS}/StreamSecrets`;
export const DELTA_SECRETS_METHOD = `${SECRETS}/DeltaSecrets`;
export const HEALTH_METHOD = "/grpc.health.v1.Health/Check";

type Serve = (call: GrpcCall, connection: GrpcConnection) => void;

/**
 * Builds the server; nothing is opened before `listen`. It speaks gRPC on HTTP/2 of our own (`http2/`), because messages must pass as they are: the same bytes to
 * every stream, without a copy for each.
 */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const settings = { ...DEFAULT_GRPC_SETTINGS, ...options.settings };
  const { clock, misbehaved = () => {} } = options;
  const listeners: Listener[] = [];
  const connections = new Set<GrpcConnection>();
  const pace = new SharedPace();
  const counted = { streams: 0 };
  const discovery = (variant: DiscoveryVariant, typeUrl?: string): Serve => {
    return (call, connection) => {
      if (counted.streams >= settings.maxStreams) {
        misbehaved("too many streams");
        call.close(GRPC_STATUS.RESOURCE_EXHAUSTED, `this control plane serves ${settings.maxStreams} streams already`);
        return;
      }
      counted.streams += 1;
      const method = { variant, ...(typeUrl !== undefined && { typeUrl }) };
      serveDiscovery(call, { ...method, connection, accept: options.accept, closed: () => (counted.streams -= 1) });
    };
  };
  const streams = streamsOf(options, discovery);
  const methods = methodsOf(options);
  const route = (connection: GrpcConnection, stream: ServerStream): void => {
    if (!isGrpc(stream)) {
      notGrpc(stream);
      return;
    }
    const path = stream.head.get(":path") ?? "";
    const discovering = streams.get(path);
    const serve = discovering ?? methods.get(path) ?? noSuchMethod;
    const maxRequestBytes = discovering === undefined ? settings.maxUnaryBytes : settings.maxRequestBytes;
    serve(new GrpcCall({ stream, connection: connection.peer, maxRequestBytes, clock, misbehaved }), connection);
  };
  return {
    async listen(at, tls) {
      const accept = (socket: Socket): void => {
        const connection = new GrpcConnection(socket, {
          settings,
          clock,
          pace,
          opened: (stream) => route(connection, stream),
          closed: () => connections.delete(connection),
          misbehaved,
        });
        connections.add(connection);
      };
      const port = typeof at === "string" ? await openPort(at, settings.maxConnections) : at;
      if (tls === undefined) port.serve(accept);
      const listener = tls === undefined ? port : serveTls({ port, tls, accept, misbehaved });
      listeners.push(listener);
      return listener.port;
    },
    async drain(ms) {
      for (const listener of listeners) listener.close();
      await Promise.all([...connections].map((connection) => connection.retire(ms)));
    },
    get streams() {
      return counted.streams;
    },
  };
}

function streamsOf(
  { discoveryPaths = {} }: GrpcServerOptions,
  discovery: (variant: DiscoveryVariant, typeUrl?: string) => Serve,
): ReadonlyMap<string, Serve> {
  return new Map<string, Serve>([
    [SOTW_METHOD, discovery("sotw")],
    [DELTA_METHOD, discovery("delta")],
    ...Object.entries(discoveryPaths).map(([path, variant]): [string, Serve] => [
      path,
      discovery(variant, path.startsWith(SECRETS) ? SECRET_TYPE : undefined),
    ]),
  ]);
}

function methodsOf({ healthy, methods = {}, dialogues = {}, clock }: GrpcServerOptions): ReadonlyMap<string, Serve> {
  return new Map<string, Serve>([
    [HEALTH_METHOD, unary(() => healthResponse(healthy()), clock)],
    ...Object.entries(methods).map(([path, method]): [string, Serve] => [path, unary(method, clock)]),
    ...Object.entries(dialogues).map(([path, method]): [string, Serve] => [path, dialogue(method, clock)]),
  ]);
}

interface DiscoveryWiring extends Pick<DiscoveryStream, "variant" | "typeUrl"> {
  readonly connection: GrpcConnection;
  accept(stream: DiscoveryStream): DiscoveryStreamEvents;
  closed(): void;
}

function serveDiscovery(call: GrpcCall, { connection, accept, closed, ...method }: DiscoveryWiring): void {
  const events = accept({
    ...method,
    peer: call.peer,
    begin: () => call.begin(),
    send: (message, flushed) => call.send(message, flushed),
    close: (status, reason) => call.close(status, reason),
    progress: () => connection.written,
    pause: () => call.pause(),
    resume: () => call.resume(),
    abort: () => connection.cut(),
  });
  call.listen({
    message: (bytes) => events.message(bytes),
    finished: () => call.close(GRPC_STATUS.OK, ""),
    ended() {
      closed();
      events.ended();
    },
  });
}

/** Answers the first message, and needs no more. */
function unary(method: UnaryMethod, clock: Clock): Serve {
  return (call) => {
    let request: Buffer | undefined;
    const stopWaiting = clock.after(UNARY_MS, () => call.close(GRPC_STATUS.DEADLINE_EXCEEDED, "the request did not come in time"));
    const answer = async (bytes: Buffer): Promise<void> => {
      try {
        call.answer(await method(bytes, call.peer));
      } catch (error) {
        call.close(error instanceof CallRefusal ? error.status : GRPC_STATUS.INTERNAL, messageOf(error));
      }
    };
    call.listen({
      message(bytes) {
        if (request !== undefined) return;
        request = bytes;
        stopWaiting();
        void answer(bytes);
      },
      finished() {
        if (request === undefined) call.close(GRPC_STATUS.INVALID_ARGUMENT, "no request came");
      },
      ended: stopWaiting,
    });
  };
}

/** How long nothing may be asked on a stream that somebody asks questions on. */
const SILENCE_MS = 60_000;

/** Answers each message with one, in order, and reads no further meanwhile. */
function dialogue(method: UnaryMethod, clock: Clock): Serve {
  return (call) => {
    let answered = Promise.resolve();
    const refuse = (error: unknown): void =>
      call.close(error instanceof CallRefusal ? error.status : GRPC_STATUS.INTERNAL, messageOf(error));
    const waitForMore = (): (() => void) =>
      clock.after(SILENCE_MS, () => call.close(GRPC_STATUS.DEADLINE_EXCEEDED, "nothing more was asked"));
    let stopWaiting = waitForMore();
    const answer = async (bytes: Buffer): Promise<void> => {
      const message = await method(bytes, call.peer);
      await new Promise<void>((resolve) => call.send([message], resolve));
      stopWaiting();
      stopWaiting = waitForMore();
      call.resume();
    };
    call.listen({
      message(bytes) {
        call.pause();
        answered = answered.then(() => answer(bytes));
        answered.catch(refuse);
      },
      finished: () => void answered.then(() => call.close(GRPC_STATUS.OK, ""), refuse),
      ended: () => stopWaiting(),
    });
  };
}

const noSuchMethod: Serve = (call) => call.close(GRPC_STATUS.UNIMPLEMENTED, "no such method");

const isGrpc = ({ head }: ServerStream): boolean =>
  head.get(":method") === "POST" && head.get("content-type")?.startsWith("application/grpc") === true;

const NOT_GRPC = headerBlock([[":status", "415"]]);

/** What a browser or a health check of another kind is told. */
function notGrpc(stream: ServerStream): void {
  stream.end(NOT_GRPC, () => stream.reset(HTTP2_ERROR.NO_ERROR));
}

/** A serialized `HealthCheckResponse`: SERVING is 1, NOT_SERVING 2. */
const healthResponse = (healthy: boolean): Uint8Array => Uint8Array.of(0x08, healthy ? 1 : 2);
