import type { Duration } from "@bufbuild/protobuf/wkt";
import { msOfDuration } from "../../base/duration.ts";
import type { HttpProtocolInput, KeepaliveInput, LimitsInput } from "../../envoy/cluster/index.ts";
import { type MeshConfig, MeshConfig_H2UpgradePolicy } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { TrafficPolicy_RetryBudget } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import {
  type ConnectionPoolSettings,
  ConnectionPoolSettings_HTTPSettings_H2UpgradePolicy as H2Upgrade,
} from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import { isHttp, isHttp2, type Protocol } from "../../model/protocol.ts";

type Pool = ConnectionPoolSettings | undefined;

/** Thresholds of a connection pool. 0 means "not said" in the Istio API. */
export function limitsOf(pool: Pool, budget?: TrafficPolicy_RetryBudget | undefined): LimitsInput {
  return {
    connections: positive(pool?.tcp?.maxConnections),
    pendingRequests: positive(pool?.http?.http1MaxPendingRequests),
    requests: positive(pool?.http?.http2MaxRequests),
    retries: positive(pool?.http?.maxRetries),
    retryBudget:
      budget === undefined
        ? undefined
        : { percent: budget.percent ?? 20, minConcurrency: budget.minRetryConcurrency || 3, intervalMs: millis(budget.budgetInterval) },
  };
}

export const connectTimeoutOf = (pool: Pool, mesh: MeshConfig): number =>
  millis(pool?.tcp?.connectTimeout) ?? millis(mesh.connectTimeout) ?? 10_000;

/** Keepalive of a destination, field by field where it says something, else of the mesh; undefined = the system's own. */
export function keepaliveOf(pool: Pool, mesh: MeshConfig): KeepaliveInput | undefined {
  const own = pool?.tcp?.tcpKeepalive;
  if (own === undefined && mesh.tcpKeepalive === undefined) return undefined;
  return {
    probes: positive(own?.probes) ?? positive(mesh.tcpKeepalive?.probes),
    timeSeconds: seconds(own?.time ?? mesh.tcpKeepalive?.time),
    intervalSeconds: seconds(own?.interval ?? mesh.tcpKeepalive?.interval),
  };
}

/** What decides the HTTP version towards a destination. */
export interface HttpVersionQuery {
  readonly protocol: Protocol;
  readonly pool: Pool;
  readonly mesh: MeshConfig;
  /** Ports without a declared protocol are sniffed: they speak upstream what the client speaks. */
  readonly sniff: boolean;
  /** HTTP/1 may be spoken to the destination, and the spelling of headers matters: HTTP/2 would not keep it. */
  readonly preserveHeaderCase: boolean;
}

/**
 * HTTP version spoken to a destination, undefined where nothing but TCP is. A DestinationRule that asks for an upgrade gets it on any
 * port that is not sniffed; the mesh-wide policy upgrades declared HTTP ports only, because others may carry something else. Neither
 * upgrades where the spelling of headers is to be kept, as in Istio.
 */
export function httpVersionOf(query: HttpVersionQuery): HttpProtocolInput["version"] | undefined {
  const { protocol, pool, mesh, sniff, preserveHeaderCase } = query;
  if (pool?.http?.useClientProtocol === true) return "downstream";
  const own = pool?.http?.h2UpgradePolicy;
  if (protocol === "Auto" && sniff) return "downstream";
  if (isHttp2(protocol)) return "http2";
  if (preserveHeaderCase) return undefined;
  if (own === H2Upgrade.UPGRADE) return "http2";
  if (!isHttp(protocol) || own === H2Upgrade.DO_NOT_UPGRADE) return undefined;
  return mesh.h2UpgradePolicy === MeshConfig_H2UpgradePolicy.UPGRADE ? "http2" : undefined;
}

export interface HttpOptionsQuery {
  readonly version: HttpProtocolInput["version"] | undefined;
  readonly pool: Pool;
  readonly autoSni: boolean;
  readonly autoSanValidation: boolean;
  /** HTTP/1 may be spoken to the destination, and the spelling of headers matters. */
  readonly preserveHeaderCase: boolean;
  readonly outlierCodes: readonly number[];
}

/** HTTP options of a cluster; undefined where Envoy's defaults say the same. The idle timeout of TCP holds where HTTP has none of its own. */
export function httpOptionsOf(query: HttpOptionsQuery): HttpProtocolInput | undefined {
  const { version, pool, autoSni, autoSanValidation, preserveHeaderCase, outlierCodes } = query;
  const keepalive = pool?.http?.http2KeepAlive;
  const options: HttpProtocolInput = {
    version: version ?? "http1",
    idleTimeoutMs: millis(pool?.http?.idleTimeout) ?? millis(pool?.tcp?.idleTimeout),
    maxRequestsPerConnection: positive(pool?.http?.maxRequestsPerConnection),
    maxConnectionDurationMs: millis(pool?.tcp?.maxConnectionDuration),
    maxConcurrentStreams: positive(pool?.http?.maxConcurrentStreams),
    http2Keepalive: keepalive && { intervalMs: millis(keepalive.interval), timeoutMs: millis(keepalive.timeout) },
    autoSni,
    autoSanValidation,
    ...(preserveHeaderCase && version !== "http2" && { preserveHeaderCase }),
    ...(outlierCodes.length > 0 && { outlierCodes }),
  };
  const { version: _, ...rest } = options;
  const said = version !== undefined || Object.values(rest).some((value) => value !== undefined && value !== false);
  return said ? options : undefined;
}

const millis = (duration: Duration | undefined): number | undefined => (duration === undefined ? undefined : msOfDuration(duration));

/** Envoy counts keepalive in whole seconds, at least one. */
const seconds = (duration: Duration | undefined): number | undefined =>
  duration === undefined ? undefined : Math.max(1, Math.floor(msOfDuration(duration) / 1000));

const positive = (value: number | undefined): number | undefined => (value === undefined || value <= 0 ? undefined : value);
