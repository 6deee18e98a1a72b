import {
  type handleBidiStreamingCall,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerOptions,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { DiscoveryStream, DiscoveryStreamEvents, DiscoveryVariant, Peer } from "./discovery-stream.ts";
import { GRPC_STATUS, type GrpcStatus } from "./grpc-status.ts";
import { type Listener, openListener } from "./listener.ts";

/** Limits and timings of a gRPC server; the defaults follow Istio's where Istio has the setting. */
export interface GrpcServerSettings {
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** 0 is for ever. */
  readonly maxConnectionAgeMs: number;
  readonly maxRequestBytes: number;
  readonly maxStreamsPerConnection: number;
  readonly maxStreams: number;
  readonly maxConnections: number;
}

export const DEFAULT_GRPC_SETTINGS: GrpcServerSettings = {
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  maxConnectionAgeMs: 0,
  maxRequestBytes: 4 * 1024 * 1024,
  maxStreamsPerConnection: 100,
  maxStreams: 20_000,
  maxConnections: 20_000,
};

export interface GrpcServerOptions {
  /** Called for each discovery stream; a stream beyond the limits is refused before. */
  accept(stream: DiscoveryStream): DiscoveryStreamEvents;
  /** What `grpc.health.v1.Health/Check` answers. */
  healthy(): boolean;
  readonly clock: Clock;
  readonly settings?: Partial<GrpcServerSettings>;
  /** Further services on the same port (the CA, for example). */
  readonly services?: readonly { readonly definition: ServiceDefinition; readonly implementation: UntypedServiceImplementation }[];
}

/** A gRPC server with the aggregated discovery service and health on it. */
export interface GrpcServer {
  /** Binds `host:port` or `unix:path`; gives the port. May be called for several addresses. */
  listen(address: string, credentials?: ServerCredentials): Promise<number>;
  /** Stops accepting, lets calls finish for `ms`, then cuts them. */
  drain(ms: number): Promise<void>;
  /** Discovery streams open now. */
  readonly streams: number;
}

const DISCOVERY = "/envoy.service.discovery.v3.AggregatedDiscoveryService";
export const SOTW_METHOD = `${DISCOVERY}/StreamAggregatedResources`;
export const DELTA_METHOD = `${DISCOVERY}/DeltaAggregatedResources`;
export const HEALTH_METHOD = "/grpc.health.v1.Health/Check";

/** Builds the server; nothing is opened before `listen`. Messages pass as bytes: encoding happens once, above, not per stream. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const settings = { ...DEFAULT_GRPC_SETTINGS, ...options.settings };
  const server = new Server(serverOptions(settings));
  const listeners: Listener[] = [];
  let streams = 0;
  const connections: Connections = {
    abort: (peer) => {
      for (const listener of listeners) listener.abort(peer);
    },
    written: (peer) => listeners.reduce((sum, listener) => sum + (listener.written(peer) ?? 0), 0),
  };
  const handle =
    (variant: DiscoveryVariant): handleBidiStreamingCall<Buffer, Buffer> =>
    (call) => {
      call.on("error", () => {});
      if (streams >= settings.maxStreams)
        return refuse(call, GRPC_STATUS.RESOURCE_EXHAUSTED, `this control plane serves ${settings.maxStreams} streams already`);
      streams += 1;
      serveStream(call, { variant, accept: options.accept, connections, closed: () => (streams -= 1) });
    };
  server.addService(
    { sotw: bytesMethod(SOTW_METHOD, true), delta: bytesMethod(DELTA_METHOD, true), health: bytesMethod(HEALTH_METHOD, false) },
    {
      sotw: handle("sotw"),
      delta: handle("delta"),
      health: (_call: unknown, reply: (error: null, message: Buffer) => void) => reply(null, healthResponse(options.healthy())),
    },
  );
  for (const service of options.services ?? []) server.addService(service.definition, service.implementation);
  return {
    async listen(address, credentials) {
      const injector = server.createConnectionInjector(credentials ?? ServerCredentials.createInsecure());
      const listener = await openListener(address, settings.maxConnections, (socket) => injector.injectConnection(socket));
      listeners.push(listener);
      return listener.port;
    },
    drain(ms) {
      for (const listener of listeners) listener.close();
      return drain(server, options.clock, ms);
    },
    get streams() {
      return streams;
    },
  };
}

function serverOptions(settings: GrpcServerSettings): ServerOptions {
  return {
    "grpc.keepalive_time_ms": settings.keepaliveMs,
    "grpc.keepalive_timeout_ms": settings.keepaliveTimeoutMs,
    "grpc.max_receive_message_length": settings.maxRequestBytes,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": settings.maxStreamsPerConnection,
    "grpc.enable_channelz": 0,
    ...(settings.maxConnectionAgeMs > 0 && {
      "grpc.max_connection_age_ms": settings.maxConnectionAgeMs,
      "grpc.max_connection_age_grace_ms": 10_000,
    }),
  };
}

interface StreamWiring {
  readonly variant: DiscoveryVariant;
  accept(stream: DiscoveryStream): DiscoveryStreamEvents;
  readonly connections: Connections;
  closed(): void;
}

type Connections = Pick<Listener, "abort"> & { written(peer: string): number };

/** Connects one call to its handler. A throw of the handler ends this stream alone. */
function serveStream(call: ServerDuplexStream<Buffer, Buffer>, wiring: StreamWiring): void {
  let open = true;
  let events: DiscoveryStreamEvents | undefined;
  const end = (): void => {
    if (!open) return;
    open = false;
    wiring.closed();
    events?.ended();
  };
  const close = (status: GrpcStatus, reason: string): void => {
    if (!open) return;
    refuse(call, status, reason);
    end();
  };
  call.on("cancelled", end);
  call.on("close", end);
  call.on("error", end);
  call.on("end", () => close(GRPC_STATUS.OK, "client is done"));
  const peer = peerOf(call);
  events = wiring.accept({
    variant: wiring.variant,
    peer,
    send: (message, flushed) => open && call.write(message, flushed),
    close,
    progress: () => wiring.connections.written(peer.address),
    abort() {
      wiring.connections.abort(peer.address);
      end();
    },
  });
  call.on("data", (message: Buffer) => {
    if (!open) return;
    try {
      events?.message(message);
    } catch (error) {
      close(GRPC_STATUS.INTERNAL, messageOf(error));
    }
  });
}

function refuse(call: ServerDuplexStream<Buffer, Buffer>, status: GrpcStatus, reason: string): void {
  if (status === GRPC_STATUS.OK) call.end();
  else call.emit("error", { code: status, details: reason });
}

function peerOf(call: ServerDuplexStream<Buffer, Buffer>): Peer {
  return {
    address: call.getPeer(),
    header: (name) => call.metadata.get(name)[0]?.toString(),
    certificate: call.getAuthContext().sslPeerCertificate?.raw,
  };
}

const identity = (bytes: Buffer): Buffer => bytes;

function bytesMethod(path: string, streaming: boolean): MethodDefinition<Buffer, Buffer> {
  const pass = { requestSerialize: identity, requestDeserialize: identity, responseSerialize: identity, responseDeserialize: identity };
  return { path, requestStream: streaming, responseStream: streaming, ...pass };
}

/** A serialized `HealthCheckResponse`: SERVING is 1, NOT_SERVING 2. */
const healthResponse = (healthy: boolean): Buffer => Buffer.from([0x08, healthy ? 1 : 2]);

function drain(server: Server, clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, () => {
      server.forceShutdown();
      resolve();
    });
    server.tryShutdown(() => {
      cancel();
      resolve();
    });
  });
}
