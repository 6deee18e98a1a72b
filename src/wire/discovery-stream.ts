import type { GrpcStatus } from "./grpc-status.ts";
import type { MessageBytes } from "./shared-blocks.ts";

export type DiscoveryVariant = "sotw" | "delta";

/** Who is on the other end of a connection, as far as the transport knows. */
export interface Peer {
  /** `address:port`, or the path of a Unix socket. */
  readonly address: string;
  /** First value of a request header. */
  header(name: string): string | undefined;
  /** The verified client certificate (DER), where the connection has one. */
  readonly certificate: Uint8Array | undefined;
  /** Why the certificate that the client showed was not verified. */
  readonly certificateFault?: string;
}

/** One discovery stream as the server sees it: messages are bytes, meaning is added above. */
export interface DiscoveryStream {
  readonly variant: DiscoveryVariant;
  /** The one type the called method is for; absent for the aggregated service, where each request names its type. */
  readonly typeUrl?: string;
  readonly peer: Peer;
  /** Lets the client know that it is served, where nothing was sent to it yet. The first message says so, too. */
  begin(): void;
  /** Queues one message; `flushed` is called when the network has taken all of it, and never for a stream that ended before. */
  send(message: MessageBytes, flushed: () => void): void;
  /** Ends the stream with a status, after what was queued. */
  close(status: GrpcStatus, reason: string): void;
  /** Bytes the network has taken on this connection so far: a slow reader makes progress, one that does not read makes none. */
  progress(): number;
  /** Takes no more messages for now; what the client goes on to say stays in its hands, but for the little that is on its way. */
  pause(): void;
  /** Takes messages again. */
  resume(): void;
  /** Cuts the whole connection: for a client that does not read, and so would never come to the status. */
  abort(): void;
}

/** What happens on a stream. `ended` comes once, last. */
export interface DiscoveryStreamEvents {
  message(bytes: Uint8Array): void;
  ended(): void;
}
