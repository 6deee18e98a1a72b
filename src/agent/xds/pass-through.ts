import type { Log } from "../../base/log.ts";
import type { DiscoveryStream, DiscoveryStreamEvents, DiscoveryVariant } from "../../wire/discovery-stream.ts";
import { type ClientCall, GrpcError } from "../../wire/grpc-channel.ts";
import { DELTA_METHOD, SOTW_METHOD } from "../../wire/grpc-server.ts";
import { GRPC_STATUS } from "../../wire/grpc-status.ts";
import type { Connection } from "../dialer.ts";
import { sentenceOf } from "../identity/workload-identity.ts";
import { counted, createXdsCounts, noteEnd, type XdsCounts } from "./xds-counts.ts";

const MOST_WAITING = 64;

/** Where streams are passed on to: the control plane, where nothing else is said. */
export interface Beyond {
  readonly name?: string;
  dial(): Promise<Connection>;
  /** Method that is called for each variant. */
  readonly methods?: Readonly<Record<DiscoveryVariant, string>>;
}

const DISCOVERY = { sotw: SOTW_METHOD, delta: DELTA_METHOD };

export interface PassingDeps {
  readonly dialer: Beyond;
  readonly log: Log;
  /** Where the stream counts; streams for secrets do so nowhere. */
  readonly counts?: XdsCounts;
}

/**
 * Joins a stream with one of the control plane or another server, byte for byte, from its first message to the end of either: for clients that speak
 * state-of-the-world xDS, and for secrets that are not the agent's. The client connects again by itself.
 */
export function passThrough(stream: DiscoveryStream, { dialer, log, counts = createXdsCounts() }: PassingDeps): DiscoveryStreamEvents {
  const { name = "the control plane", methods = DISCOVERY } = dialer;
  const waiting: Uint8Array[] = [];
  let call: ClientCall | undefined;
  let connection: Connection | undefined;
  let open = true;
  const end = (error: unknown): void => {
    if (!open) return;
    open = false;
    connection?.channel.close();
    if (error !== undefined) log.warn(`a stream could not be passed on to ${name}: ${sentenceOf(error)}`);
    stream.close(GRPC_STATUS.UNAVAILABLE, error === undefined ? `${name} ended the stream` : sentenceOf(error));
  };
  const start = async (): Promise<void> => {
    connection = await counted(counts, dialer.dial());
    if (!open) return connection.channel.close();
    call = connection.channel.open(methods[stream.variant], connection.headers, {
      message(bytes) {
        counts.responses += 1;
        stream.send([bytes], () => {});
      },
      ended(error) {
        noteEnd(counts.istiod, error);
        end(error);
      },
    });
    for (const bytes of waiting.splice(0)) call.send(bytes);
  };
  start().catch(end);
  return {
    message(bytes) {
      counts.requests += 1;
      if (call !== undefined) call.send(bytes);
      else if (waiting.length < MOST_WAITING) waiting.push(Buffer.from(bytes));
      else end(new GrpcError(GRPC_STATUS.RESOURCE_EXHAUSTED, "too much was said before it was passed on"));
    },
    ended() {
      noteEnd(counts.envoy, undefined);
      open = false;
      call?.cancel();
      connection?.channel.close();
    },
  };
}
