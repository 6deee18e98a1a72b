import { type ChannelCredentials, Client, credentials, type Metadata } from "@grpc/grpc-js";
import type { DiscoveryVariant } from "./discovery-stream.ts";
import { DELTA_METHOD, SOTW_METHOD } from "./grpc-server.ts";

export interface AdsClientOptions {
  /** `host:port` or `unix:path`. */
  readonly address: string;
  readonly variant: DiscoveryVariant;
  readonly credentials?: ChannelCredentials;
  readonly metadata?: Metadata;
  /** Path of another discovery service than the aggregated one. */
  readonly method?: string;
  message(bytes: Buffer): void;
  ended(error: Error | undefined): void;
}

/** A raw aggregated discovery stream seen from the client. Each one has a connection of its own, as each proxy has. */
export interface AdsClient {
  send(request: Uint8Array): void;
  /** Stops and starts reading: what is not read is held back by flow control. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** Opens a discovery stream. Bytes in, bytes out: for the command line, tests and measurements. */
export function openAdsClient(options: AdsClientOptions): AdsClient {
  const client = new Client(options.address, options.credentials ?? credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_receive_message_length": -1,
    "grpc.enable_channelz": 0,
  });
  const path = options.method ?? (options.variant === "delta" ? DELTA_METHOD : SOTW_METHOD);
  const identity = (bytes: Buffer): Buffer => bytes;
  const call =
    options.metadata === undefined
      ? client.makeBidiStreamRequest(path, identity, identity)
      : client.makeBidiStreamRequest(path, identity, identity, options.metadata);
  let failure: Error | undefined;
  call.on("data", options.message);
  call.on("error", (error) => {
    failure = error;
  });
  call.on("status", () => {
    client.close();
    setImmediate(() => options.ended(failure));
  });
  return {
    send: (request) => call.write(Buffer.from(request.buffer, request.byteOffset, request.byteLength)),
    pause: () => call.pause(),
    resume: () => call.resume(),
    close: () => {
      call.cancel();
      client.close();
    },
  };
}
