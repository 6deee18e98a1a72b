import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Address, AddressSchema, SocketAddress_Protocol } from "../../gen/envoy/config/core/v3/address_pb.js";
import { TrafficDirection } from "../../gen/envoy/config/core/v3/base_pb.js";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { listenerAccessLogs, type WrittenLogInput } from "../filters/access-log.ts";
import { buildFilterChain, type FilterChainInput } from "./filter-chain.ts";
import { type ListenerFiltersInput, listenerFilters } from "./listener-filters.ts";

/** Where a listener stands. The first address is the listener's own, the others are further ones of another family. */
export type BindInput =
  | {
      readonly addresses: readonly string[];
      readonly port: number;
      /** Datagrams, which carry QUIC; else connections. */
      readonly udp?: boolean;
    }
  | { readonly unixPath: string; readonly mode?: number };

/** All that may influence one listener. It is also the cache key, so the builder can read nothing else. */
export interface ListenerInput {
  readonly name: string;
  readonly bind: BindInput;
  readonly direction: "outbound" | "inbound";
  /** False where connections reach it only through the listener that all traffic is redirected to. */
  readonly bindToPort: boolean;
  /** Hand connections to the listener of their original destination. */
  readonly useOriginalDestination?: boolean;
  /** TPROXY: accept connections to foreign addresses. */
  readonly transparent?: boolean;
  readonly filters: ListenerFiltersInput;
  /** How long inspection may wait for a first byte before the connection goes on uninspected; 0 = as long as it takes. */
  readonly inspectionTimeoutMs?: number;
  readonly chains: readonly FilterChainInput[];
  readonly defaultChain?: FilterChainInput;
  /** Bytes held for one connection before reading stops; absent = Envoy's default. */
  readonly bufferLimitBytes?: number;
  /** Spread connections over the workers exactly, instead of leaving it to the kernel. */
  readonly exactBalance?: boolean;
  /** Logs of connections that no chain took. */
  readonly accessLogs: readonly WrittenLogInput[];
}

/** One connection per loop keeps workers even: without it the first worker takes what comes in a burst. */
const ACCEPT_PER_EVENT = 1;

const EXACT_BALANCE = { balanceType: { case: "exactBalance", value: {} } } as const;

/** Builds a listener. Pure: equal inputs give equal bytes. */
export function buildListener(input: ListenerInput): Listener {
  return create(ListenerSchema, {
    name: input.name,
    ...addresses(input.bind),
    trafficDirection: input.direction === "inbound" ? TrafficDirection.INBOUND : TrafficDirection.OUTBOUND,
    ...(input.bindToPort ? { maxConnectionsToAcceptPerSocketEvent: ACCEPT_PER_EVENT } : { bindToPort: false }),
    ...(input.useOriginalDestination === true && { useOriginalDst: true }),
    ...(input.transparent === true && { transparent: true }),
    ...(input.bufferLimitBytes !== undefined && { perConnectionBufferLimitBytes: input.bufferLimitBytes }),
    ...(input.exactBalance === true && { connectionBalanceConfig: EXACT_BALANCE }),
    listenerFilters: listenerFilters(input.filters),
    ...(input.inspectionTimeoutMs !== undefined && {
      listenerFiltersTimeout: durationFromMs(input.inspectionTimeoutMs),
      continueOnListenerFiltersTimeout: true,
    }),
    filterChains: input.chains.map(buildFilterChain),
    ...(input.defaultChain !== undefined && { defaultFilterChain: buildFilterChain(input.defaultChain) }),
    accessLog: listenerAccessLogs(input.accessLogs),
  });
}

function addresses(bind: BindInput) {
  if ("unixPath" in bind) {
    const address = create(AddressSchema, { address: { case: "pipe", value: { path: bind.unixPath, mode: bind.mode ?? 0 } } });
    return { address };
  }
  const [first = "0.0.0.0", ...others] = bind.addresses;
  const socket = (address: string): Address =>
    create(AddressSchema, {
      address: {
        case: "socketAddress",
        value: {
          address,
          portSpecifier: { case: "portValue", value: bind.port },
          ...(bind.udp === true && { protocol: SocketAddress_Protocol.UDP }),
        },
      },
    });
  return {
    address: socket(first),
    additionalAddresses: others.map((other) => ({ address: socket(other) })),
    ...(bind.udp === true && { udpListenerConfig: { quicOptions: {}, downstreamSocketConfig: {} } }),
  };
}
