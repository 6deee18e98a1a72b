import type { Duration } from "@bufbuild/protobuf/wkt";
import {
  type ConnectionPoolSettings,
  type ConnectionPoolSettings_HTTPSettings,
  type ConnectionPoolSettings_TCPSettings,
  ConnectionPoolSettings_HTTPSettings_H2UpgradePolicy as H2UpgradePolicy,
} from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import { durationFault, millisOf } from "./duration.ts";
import type { Place } from "./place.ts";

/** Limits of connections and requests, of a DestinationRule, a Sidecar or the mesh. */
export function checkConnectionPool(pool: ConnectionPoolSettings, place: Place): void {
  if (pool.tcp === undefined && pool.http === undefined) place.fault("field.required", "a connection pool needs tcp or http settings");
  if (pool.tcp !== undefined) checkTcp(pool.tcp, place.in("tcp"));
  if (pool.http !== undefined) checkHttp(pool.http, place.in("http"));
}

function checkTcp(tcp: ConnectionPoolSettings_TCPSettings, place: Place): void {
  notNegative(tcp, ["maxConnections"], place);
  for (const name of ["connectTimeout", "maxConnectionDuration"] as const) {
    const value = tcp[name];
    if (value !== undefined) place.in(name).check("field.range", durationFault(value));
  }
  // Zero switches it off; Istio takes less than a millisecond for that, too.
  const idle = tcp.idleTimeout;
  const isOff = idle !== undefined && millisOf(idle) >= 0 && millisOf(idle) < 1;
  if (idle !== undefined && !isOff) place.in("idleTimeout").check("field.range", durationFault(idle));
  for (const name of ["time", "interval"] as const) {
    const value = tcp.tcpKeepalive?.[name];
    if (value !== undefined) place.in("tcpKeepalive", name).check("field.range", durationFault(value) ?? secondsFault(value));
  }
}

/** Envoy counts the seconds of keep-alives in 32 bits. */
const MOST_SECONDS = 4_294_967_295n;

const secondsFault = ({ seconds }: Duration): string | undefined =>
  seconds > MOST_SECONDS ? `must be at most ${MOST_SECONDS} seconds` : undefined;

function checkHttp(http: ConnectionPoolSettings_HTTPSettings, place: Place): void {
  notNegative(
    http,
    ["http1MaxPendingRequests", "http2MaxRequests", "maxRequestsPerConnection", "maxRetries", "maxConcurrentStreams"],
    place,
  );
  if (http.idleTimeout !== undefined) place.in("idleTimeout").check("field.range", durationFault(http.idleTimeout));
  if (http.h2UpgradePolicy === H2UpgradePolicy.UPGRADE && http.useClientProtocol) {
    place.in("useClientProtocol").fault("field.conflict", "cannot be combined with h2UpgradePolicy UPGRADE");
  }
  if (http.http2KeepAlive === undefined) return;
  for (const name of ["interval", "timeout"] as const) {
    const value = http.http2KeepAlive[name];
    const at = place.in("http2KeepAlive", name);
    if (value === undefined) at.fault("field.required", "HTTP/2 pings need an interval and a timeout");
    else at.check("field.range", durationFault(value));
  }
}

function notNegative<K extends string>(settings: Readonly<Record<K, number>>, names: readonly K[], place: Place): void {
  for (const name of names) if (settings[name] < 0) place.in(name).fault("field.range", "must not be negative");
}
