import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Filter, FilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { MongoProxySchema } from "../../gen/envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy_pb.js";
import { RedisProxySchema } from "../../gen/envoy/extensions/filters/network/redis_proxy/v3/redis_proxy_pb.js";
import {
  TcpProxy_UpstreamConnectMode as ConnectMode,
  TcpProxySchema,
} from "../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.js";
import { anyOf } from "../../wire/encode.ts";
import type { DnsCacheInput } from "../dns-cache.ts";
import { type AccessLogInput, connectionLogs, countsClientsWhenConnected, countsWhenConnected, reportInterval } from "./access-log.ts";
import { resolvesSni } from "./dynamic-dns.ts";
import { networkExtension, type PhasedExtensions } from "./extension-filter.ts";
import type { PolicyFilters } from "./policy-filters.ts";

/** One destination of a connection and its share. */
export interface TcpDestination {
  readonly cluster: string;
  readonly weight: number;
}

/** Where and how connections of one filter chain are forwarded. */
export interface TcpProxyInput {
  readonly statPrefix: string;
  /** One with weight 0: all connections go there. Else they share by weight. */
  readonly destinations: readonly TcpDestination[];
  readonly accessLogs: readonly AccessLogInput[];
  readonly idleTimeoutMs?: number;
  /** Choose the host by the client's address (DestinationRule consistentHash.useSourceIp). */
  readonly hashSourceIp?: boolean;
  /** Ask the destination, a proxy itself, to connect further (DestinationRule trafficPolicy.tunnel). */
  readonly tunnel?: { readonly target: string; readonly usePost: boolean };
  /** Connect to the name the TLS client asks for, at this port. */
  readonly bySni?: { readonly cache: DnsCacheInput; readonly port: number };
  /** Decode the protocol in passing: `mongo` for statistics; `redis` also to choose the endpoint of each command by its key. */
  readonly decode?: "mongo" | "redis";
  /** What the security policies of the workload ask for; absent where there are none, and towards others. */
  readonly policies?: PolicyFilters;
  /** WasmPlugins and TrafficExtensions for connections; absent where there are none. */
  readonly extensions?: PhasedExtensions;
  /** Connections are closed after this, in use or not. */
  readonly maxDurationMs?: number;
}

/**
 * The network filters of a TCP filter chain, in Istio's order: who may connect is decided first, by external authorizers before extensions of the
 * phases AUTHN and AUTHZ, by rules after them; what decodes comes before what forwards, which must be last.
 */
export function tcpFilters(input: TcpProxyInput): Filter[] {
  const { authn = [], authz = [], rest = [] } = input.extensions ?? {};
  return [
    ...(input.policies?.network.custom ?? []),
    ...[...authn, ...authz].map(networkExtension),
    ...(input.policies?.network.authorization ?? []),
    ...rest.map(networkExtension),
    ...(input.bySni === undefined ? [] : [resolvesSni(input.bySni)]),
    ...(input.decode === "mongo" ? [mongoProxy(input.statPrefix)] : []),
    input.decode === "redis" ? redisProxy(input) : tcpProxy(input),
  ];
}

function tcpProxy(input: TcpProxyInput): Filter {
  const message = create(TcpProxySchema, {
    statPrefix: input.statPrefix,
    clusterSpecifier: clusterSpecifier(input.destinations),
    accessLog: connectionLogs(input.accessLogs),
    ...logOptions(input.accessLogs),
    ...(countsClientsWhenConnected(input.accessLogs) && AFTER_HANDSHAKE),
    ...(input.idleTimeoutMs !== undefined && { idleTimeout: durationFromMs(input.idleTimeoutMs) }),
    ...(input.maxDurationMs !== undefined && { maxDownstreamConnectionDuration: durationFromMs(input.maxDurationMs) }),
    ...(input.hashSourceIp === true && { hashPolicy: [{ policySpecifier: { case: "sourceIp" as const, value: {} } }] }),
    ...(input.tunnel !== undefined && { tunnelingConfig: { hostname: input.tunnel.target, usePost: input.tunnel.usePost } }),
  });
  return create(FilterSchema, {
    name: "envoy.filters.network.tcp_proxy",
    configType: { case: "typedConfig", value: anyOf(TcpProxySchema, message) },
  });
}

/** What is said of a connection besides its end. */
function logOptions(logs: readonly AccessLogInput[]) {
  const [connected, everyMs] = [countsWhenConnected(logs), reportInterval(logs)];
  if (!connected && everyMs === undefined) return {};
  return {
    accessLogOptions: {
      flushAccessLogOnConnected: connected,
      ...(everyMs !== undefined && { accessLogFlushInterval: durationFromMs(everyMs) }),
    },
  };
}

/** Connects to the destination when the client's handshake is done, not while it goes on: before that nobody knows who the client is. */
const AFTER_HANDSHAKE = { upstreamConnectMode: ConnectMode.ON_DOWNSTREAM_TLS_HANDSHAKE, maxEarlyDataBytes: 0 };

function clusterSpecifier(destinations: readonly TcpDestination[]) {
  const [first, ...others] = destinations;
  if (first?.weight === 0 && others.length === 0) return { case: "cluster", value: first.cluster } as const;
  return { case: "weightedClusters", value: { clusters: destinations.map(({ cluster, weight }) => ({ name: cluster, weight })) } } as const;
}

const REDIS_TIMEOUT_MS = 5_000;

/** It ends the chain itself. Of several destinations it takes the first: commands have no weights. */
const redisProxy = ({ statPrefix, destinations }: TcpProxyInput): Filter =>
  create(FilterSchema, {
    name: "envoy.filters.network.redis_proxy",
    configType: {
      case: "typedConfig",
      value: anyOf(
        RedisProxySchema,
        create(RedisProxySchema, {
          statPrefix,
          latencyInMicros: true,
          settings: { opTimeout: durationFromMs(REDIS_TIMEOUT_MS) },
          prefixRoutes: { catchAllRoute: { cluster: destinations[0]?.cluster ?? "" } },
        }),
      ),
    },
  });

const mongoProxy = (statPrefix: string): Filter =>
  create(FilterSchema, {
    name: "envoy.filters.network.mongo_proxy",
    configType: { case: "typedConfig", value: anyOf(MongoProxySchema, create(MongoProxySchema, { statPrefix })) },
  });
