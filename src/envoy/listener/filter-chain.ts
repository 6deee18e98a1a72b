import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Filter,
  type FilterChain,
  type FilterChainMatch,
  FilterChainMatchSchema,
  FilterChainSchema,
} from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { networkExtension, type PhasedExtensions } from "../filters/extension-filter.ts";
import { type HttpManagerInput, httpConnectionManager } from "../filters/http-connection-manager.ts";
import { type TcpProxyInput, tcpFilters } from "../filters/tcp-proxy.ts";
import { type DownstreamTlsInput, downstreamQuicSocket, downstreamTlsContext, downstreamTlsSocket } from "../tls/index.ts";
import { cidrRange } from "./cidr-range.ts";

/** Which connections a filter chain takes. Nothing said: all of them. */
export interface ChainMatch {
  readonly destinationPort?: number;
  readonly transport?: "tls" | "raw_buffer";
  readonly applicationProtocols?: readonly string[];
  readonly serverNames?: readonly string[];
  /** Destination addresses, as CIDR. */
  readonly destinations?: readonly string[];
}

/** One filter chain: what it takes, how it is decrypted, what is done with it. */
export interface FilterChainInput {
  readonly name?: string;
  readonly match: ChainMatch;
  readonly content: { readonly http: HttpManagerInput; readonly network?: PhasedExtensions } | { readonly tcp: TcpProxyInput };
  readonly tls?: DownstreamTlsInput;
  /** That TLS is part of QUIC. */
  readonly quic?: boolean;
  /** How long a client may take for the TLS handshake. */
  readonly handshakeTimeoutMs?: number;
}

/** Builds one filter chain. */
export function buildFilterChain(input: FilterChainInput): FilterChain {
  const match = chainMatch(input.match);
  const transportSocket = input.quic === true ? downstreamQuicSocket : downstreamTlsSocket;
  return create(FilterChainSchema, {
    name: input.name ?? "",
    ...(match !== undefined && { filterChainMatch: match }),
    filters: filters(input.content),
    ...(input.tls !== undefined && { transportSocket: transportSocket(downstreamTlsContext(input.tls)) }),
    ...(input.handshakeTimeoutMs !== undefined && { transportSocketConnectTimeout: durationFromMs(input.handshakeTimeoutMs) }),
  });
}

function filters(content: FilterChainInput["content"]): Filter[] {
  if ("tcp" in content) return tcpFilters(content.tcp);
  const { authn = [], authz = [], rest = [] } = content.network ?? {};
  return [...[...authn, ...authz, ...rest].map(networkExtension), httpConnectionManager(content.http)];
}

/** Whether a chain takes every connection: Envoy allows one such chain per listener. */
export const takesAll = (match: ChainMatch): boolean => Object.values(match).every((part) => part === undefined);

function chainMatch(match: ChainMatch): FilterChainMatch | undefined {
  if (takesAll(match)) return undefined;
  return create(FilterChainMatchSchema, {
    ...(match.destinationPort !== undefined && { destinationPort: match.destinationPort }),
    transportProtocol: match.transport ?? "",
    applicationProtocols: [...(match.applicationProtocols ?? [])],
    serverNames: [...(match.serverNames ?? [])],
    prefixRanges: (match.destinations ?? []).map(cidrRange),
  });
}
