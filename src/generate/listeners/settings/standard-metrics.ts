import { metricTagFormat } from "../../../config/checks/metric-tag.ts";
import type { HistogramInput, StatInput, StatsLogInput, StatTag } from "../../../envoy/filters/stats-log.ts";
import type { MeshConfig } from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { Telemetry } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import {
  DERIVED_LABELS,
  DESTINATION_LABELS,
  LIVE_SUFFIX,
  MESSAGES,
  NEEDED_LABELS,
  RAW,
  SERVICE_LABELS,
  SOURCE_LABELS,
} from "../../../model/standard-metrics.ts";
import type { Side } from "../traits.ts";
import { type MetricChange, type MetricName, metricRules } from "./metric-changes.ts";

/** What counts requests, and what counts connections. */
export interface MetricLogs {
  readonly http: readonly StatsLogInput[];
  readonly tcp: readonly StatsLogInput[];
}

const NONE: MetricLogs = { http: [], tcp: [] };

interface MetricSources {
  readonly mesh: MeshConfig;
  readonly telemetry: readonly Telemetry[];
  readonly side: Side;
}

/** Istio's standard metrics of one side of a proxy: on without being asked for, changed by Telemetry objects as far as Envoy permits. */
export function metricLogsOf(sources: MetricSources): MetricLogs {
  const rules = metricRules(sources);
  if (rules === undefined) return NONE;
  const { changes, reportMs } = rules;
  const server = sources.side === "server";
  const stat = (metric: MetricName, name: string, tags: readonly StatTag[]): readonly StatInput[] => {
    const change = changes.get(metric);
    return change?.disabled === true
      ? []
      : [{ name, tags: changedTags([...tags, ...(server ? SERVER : CLIENT)], change, ONLY_FOR[server ? "server" : "client"]) }];
  };
  return { http: httpLogs(stat), tcp: tcpLogs(stat, reportMs) };
}

type StatOf = (metric: MetricName, name: string, tags: readonly StatTag[]) => readonly StatInput[];

function httpLogs(stat: StatOf): readonly StatsLogInput[] {
  const sized = (metric: MetricName, name: string, measure: Pick<HistogramInput, "unit" | "value">): readonly HistogramInput[] =>
    stat(metric, name, HTTP).map((one) => ({ ...one, ...measure }));
  return [
    ...counting("requestEnd", stat("REQUEST_COUNT", "requests_total", HTTP), [
      ...sized("REQUEST_DURATION", "request_duration_milliseconds", { unit: "milliseconds", value: "%DURATION%" }),
      ...sized("REQUEST_SIZE", "request_bytes", { unit: "bytes", value: "%DOWNSTREAM_WIRE_BYTES_RECEIVED%" }),
      ...sized("RESPONSE_SIZE", "response_bytes", { unit: "bytes", value: "%DOWNSTREAM_WIRE_BYTES_SENT%" }),
    ]),
    ...counting("grpcEnd", messageCounters(stat)),
  ];
}

/** Both directions in one, unless they are labelled differently. */
function messageCounters(stat: StatOf): readonly StatInput[] {
  const requests = stat("GRPC_REQUEST_MESSAGES", `request_${MESSAGES}`, GRPC);
  const responses = stat("GRPC_RESPONSE_MESSAGES", `response_${MESSAGES}`, GRPC);
  const [{ tags = [] } = {}] = requests;
  const same = requests.length === responses.length && JSON.stringify(tags) === JSON.stringify(responses[0]?.tags ?? []);
  return same ? requests.map((one) => ({ ...one, name: MESSAGES })) : [...requests, ...responses];
}

/** Bytes sent are those of answers, bytes received those of the client, whichever side tells of them. */
function tcpLogs(stat: StatOf, reportMs: number | undefined): readonly StatsLogInput[] {
  const opened = stat("TCP_OPENED_CONNECTIONS", "tcp_connections_opened_total", TCP);
  const closed = stat("TCP_CLOSED_CONNECTIONS", "tcp_connections_closed_total", TCP);
  const bytes = (end: string, tags: readonly StatTag[]) => [
    ...stat("TCP_SENT_BYTES", `tcp_sent_bytes_${end}`, tags).map((one) => ({ ...one, value: "%BYTES_SENT%" })),
    ...stat("TCP_RECEIVED_BYTES", `tcp_received_bytes_${end}`, tags).map((one) => ({ ...one, value: "%BYTES_RECEIVED%" })),
  ];
  const total = bytes("total", TCP);
  if (reportMs === undefined || total.length === 0)
    return [...counting("connected", opened), ...counting("connectionEnd", [...closed, ...total])];
  return [
    ...counting("connected", opened),
    ...counting("connectionEnd", closed),
    ...counting("connectionEnd", total).map((log) => ({ ...log, reportMs })),
    { kind: "stats", at: "report", counters: [], histograms: [], gauges: bytes(LIVE_SUFFIX, LIVE), reportMs },
  ];
}

const counting = (
  at: StatsLogInput["at"],
  counters: StatsLogInput["counters"],
  histograms: StatsLogInput["histograms"] = [],
): readonly StatsLogInput[] => (counters.length + histograms.length === 0 ? [] : [{ kind: "stats", at, counters, histograms }]);

const tag = (name: string, format: string): StatTag => ({ name, format });

const TCP: readonly StatTag[] = [tag("response_flags", "%RESPONSE_FLAGS%")];
const HTTP: readonly StatTag[] = [
  tag("response_code", "%RESPONSE_CODE%"),
  ...TCP,
  // Only requests of gRPC have one: by it the agent tells the two protocols apart.
  tag("grpc_response_status", "%GRPC_STATUS_NUMBER%"),
];

/** Envoy has the two numbers in one text only. */
const GRPC: readonly StatTag[] = [...HTTP, tag(RAW.messages, "%FILTER_STATE(envoy.filters.http.grpc_stats:PLAIN)%")];

/** A report says how much it is since the beginning, so each connection has numbers of its own, whatever flags it ends with; the agent adds them up. */
const LIVE: readonly StatTag[] = [tag("response_flags", "-"), tag(RAW.connection, "%CONNECTION_ID%")];

const SERVICES = tag(RAW.services, "%CLUSTER_METADATA(istio:services)%");

/** A client, and a gateway towards what is behind it, knows the endpoint it chose; it is the source itself. */
const CLIENT: readonly StatTag[] = [
  tag("reporter", "source"),
  tag("destination_principal", "%UPSTREAM_PEER_URI_SAN%"),
  tag(RAW.peer, "%UPSTREAM_METADATA(istio:workload)%"),
  SERVICES,
  tag(RAW.cluster, "%UPSTREAM_CLUSTER_RAW%"),
];

/** A server knows the client by its certificate, and by the address of its connection: what headers say of addresses is not looked at. */
const SERVER: readonly StatTag[] = [
  tag("reporter", "destination"),
  tag("source_principal", "%DOWNSTREAM_PEER_URI_SAN%"),
  tag(RAW.peer, "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"),
  SERVICES,
];

/** What Envoy counts by for nothing, once all the labels are gone that it is for. */
const onlyFor = (server: boolean): Readonly<Record<string, readonly string[]>> => ({
  [RAW.peer]: server ? SOURCE_LABELS : DESTINATION_LABELS,
  [RAW.services]: SERVICE_LABELS,
  [RAW.cluster]: SERVICE_LABELS,
});
const ONLY_FOR = { server: onlyFor(true), client: onlyFor(false) };

/** A label whose expression Envoy does not take keeps the value it has; it is reported where the object is judged. */
function changedTags(
  standard: readonly StatTag[],
  change: MetricChange | undefined,
  onlyFor: Readonly<Record<string, readonly string[]>>,
): readonly StatTag[] {
  if (change === undefined || change.tags.size === 0) return standard;
  const removed = new Set([...change.tags].filter(([, value]) => value === undefined).map(([name]) => name));
  const set = new Map<string, string>();
  for (const [name, value] of change.tags) {
    const made = value === undefined || NEEDED_LABELS.includes(name) ? undefined : metricTagFormat(value);
    if (made !== undefined && "format" in made) set.set(name, made.format);
  }
  const kept = standard.filter(({ name }) => {
    const serves = onlyFor[name];
    if (serves !== undefined) return serves.some((label) => !removed.has(label) && !set.has(label));
    return !set.has(name) && (!removed.has(name) || NEEDED_LABELS.includes(name));
  });
  const without = [...removed].filter((name) => DERIVED_LABELS.includes(name) || NEEDED_LABELS.includes(name)).sort();
  return [
    ...kept,
    ...[...set].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, format]) => tag(name, format)),
    ...(without.length === 0 ? [] : [tag(RAW.without, without.join(","))]),
  ];
}
