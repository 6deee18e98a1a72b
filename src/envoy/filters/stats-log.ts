import { create } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import {
  type AccessLog,
  type AccessLogFilter,
  AccessLogFilterSchema,
  AccessLogSchema,
  ComparisonFilter_Op as Op,
} from "../../gen/envoy/config/accesslog/v3/accesslog_pb.js";
import { AccessLogType } from "../../gen/envoy/data/accesslog/v3/accesslog_pb.js";
import { ConfigSchema, Config_Histogram_Unit as Unit } from "../../gen/envoy/extensions/access_loggers/stats/v3/stats_pb.js";
import { RAW } from "../../model/standard-metrics.ts";
import { anyOf } from "../../wire/encode.ts";

/** A label and the log format that gives its value. */
export interface StatTag {
  readonly name: string;
  readonly format: string;
}

export interface StatInput {
  /** Without the prefix that all have. */
  readonly name: string;
  readonly tags: readonly StatTag[];
}

/** What a request or connection adds to a counter: one, or what a command of log formats says. */
export type CounterInput = StatInput & { readonly value?: string };

/** What is known of a connection so far. */
export type GaugeInput = StatInput & { readonly value: string };

export type HistogramInput = StatInput & { readonly unit: "milliseconds" | "bytes"; readonly value: string };

/**
 * An access logger that counts instead of writing. All of one Envoy count in one place, so that what was counted outlives a listener that is replaced,
 * and the limits hold for all of them together.
 */
export interface StatsLogInput {
  readonly kind: "stats";
  /**
   * When it counts. Connections that end without ever having reached their destination count as connected at their end. `report` is at intervals while a
   * connection lasts, and at its end.
   */
  readonly at: "requestEnd" | "grpcEnd" | "connected" | "connectionEnd" | "report";
  readonly counters: readonly CounterInput[];
  readonly histograms: readonly HistogramInput[];
  readonly gauges?: readonly GaugeInput[];
  /** The interval of reports: at `report` only connections count that last as long, at `connectionEnd` only others. Absent: there are no reports. */
  readonly reportMs?: number;
}

const PREFIX = "istio";

/**
 * Series that one Envoy keeps; what is beyond is not counted, and Envoy says so in `server.stats_overflow`. Those that are not in use make room where
 * the bootstrap says after which time.
 */
export const MOST_COUNTERS = 10_000;
export const MOST_HISTOGRAMS = 5_000;
export const MOST_GAUGES = 10_000;

const SCOPE = {
  prefix: PREFIX,
  sharingName: PREFIX,
  maxCounters: MOST_COUNTERS,
  maxHistograms: MOST_HISTOGRAMS,
  maxGauges: MOST_GAUGES,
  enableEviction: true,
};

/** Calls are counted by how many messages they had, so that long streams have many series: they must not take the place of others. */
const MOST_MESSAGE_COUNTERS = 1_000;
const MESSAGE_SCOPE = { prefix: PREFIX, sharingName: "istio_messages", maxCounters: MOST_MESSAGE_COUNTERS, enableEviction: true };

const REPORTS = [AccessLogType.TcpPeriodic, AccessLogType.TcpConnectionEnd];

const UNITS = { milliseconds: Unit.Milliseconds, bytes: Unit.Bytes } as const;

const built = new WeakMap<StatsLogInput, AccessLog>();

/** A logger. Every filter chain of a proxy has the same ones, so each is put together once; nobody may change it. */
export function statsLog(input: StatsLogInput): AccessLog {
  const known = built.get(input);
  if (known !== undefined) return known;
  const log = create(AccessLogSchema, {
    name: "envoy.access_loggers.stats",
    filter: statsFilter(input),
    configType: { case: "typedConfig", value: configuration(input) },
  });
  built.set(input, log);
  return log;
}

const configuration = (input: StatsLogInput): Any =>
  anyOf(
    ConfigSchema,
    create(ConfigSchema, {
      statsScope: input.at === "grpcEnd" ? MESSAGE_SCOPE : SCOPE,
      counters: input.counters.map((counter) => ({
        stat: statOf(counter),
        ...(counter.value === undefined ? { valueFixed: 1n } : { valueFormat: counter.value }),
      })),
      histograms: input.histograms.map((histogram) => ({
        stat: statOf(histogram),
        unit: UNITS[histogram.unit],
        valueFormat: histogram.value,
      })),
      gauges: (input.gauges ?? []).flatMap((gauge) =>
        REPORTS.map((logType) => ({ stat: statOf(gauge), valueFormat: gauge.value, set: { logType } })),
      ),
    }),
  );

const statOf = ({ name, tags }: StatInput) => ({
  name,
  tags: tags.map(({ name: tag, format }) => ({ name: tag, valueFormat: format })),
});

/** Flags of connections that did not reach their destination: none there, no cluster, too many, refused. */
const NEVER_CONNECTED = ["UF", "UH", "UO", "NC", "NR"];

/** Selects the entries at which a logger counts. */
function statsFilter({ at, reportMs }: StatsLogInput): AccessLogFilter {
  switch (at) {
    case "requestEnd":
      return logged([AccessLogType.DownstreamEnd]);
    case "grpcEnd":
      return bothFilters(logged([AccessLogType.DownstreamEnd]), IS_GRPC);
    case "connected":
      return create(AccessLogFilterSchema, {
        filterSpecifier: { case: "orFilter", value: { filters: [logged([AccessLogType.TcpUpstreamConnected]), neverConnected()] } },
      });
    case "connectionEnd": {
      const ended = logged([AccessLogType.TcpConnectionEnd]);
      return reportMs === undefined ? ended : bothFilters(ended, lasted(Op.LE, reportMs - 1));
    }
    case "report":
      return bothFilters(logged(REPORTS), lasted(Op.GE, reportMs ?? 0));
  }
}

const IS_GRPC = create(AccessLogFilterSchema, {
  filterSpecifier: {
    case: "headerFilter",
    value: {
      header: {
        name: "content-type",
        headerMatchSpecifier: { case: "stringMatch", value: { matchPattern: { case: "prefix", value: "application/grpc" } } },
      },
    },
  },
});

const neverConnected = (): AccessLogFilter =>
  bothFilters(
    logged([AccessLogType.TcpConnectionEnd]),
    create(AccessLogFilterSchema, { filterSpecifier: { case: "responseFlagFilter", value: { flags: NEVER_CONNECTED } } }),
  );

/** Leaves out what is said of a connection before its end: only what counts wants it. */
export const onlyAtEnd = (): AccessLogFilter => logged([AccessLogType.TcpUpstreamConnected, AccessLogType.TcpPeriodic], true);

export const bothFilters = (...filters: AccessLogFilter[]): AccessLogFilter =>
  create(AccessLogFilterSchema, { filterSpecifier: { case: "andFilter", value: { filters } } });

const logged = (types: AccessLogType[], exclude = false): AccessLogFilter =>
  create(AccessLogFilterSchema, { filterSpecifier: { case: "logTypeFilter", value: { types, exclude } } });

/** Envoy demands a name under which the number could be changed while it runs. */
const lasted = (op: Op, ms: number): AccessLogFilter =>
  create(AccessLogFilterSchema, {
    filterSpecifier: { case: "durationFilter", value: { comparison: { op, value: { defaultValue: ms, runtimeKey: "istio.report_ms" } } } },
  });

const withoutPeers = new WeakMap<StatsLogInput, StatsLogInput>();

/** The same for clients that show no certificate: nobody could say who they are, and their addresses may be countless. */
export function forStrangers<L extends { readonly kind: string }>(logs: readonly (L | StatsLogInput)[]): readonly (L | StatsLogInput)[] {
  if (!logs.some(isStatsLog)) return logs;
  return logs.map((log) => {
    if (!isStatsLog(log)) return log;
    const known = withoutPeers.get(log) ?? {
      ...log,
      counters: log.counters.map(withoutPeer),
      histograms: log.histograms.map(withoutPeer),
      ...(log.gauges !== undefined && { gauges: log.gauges.map(withoutPeer) }),
    };
    withoutPeers.set(log, known);
    return known;
  });
}

const isStatsLog = (log: { readonly kind: string }): log is StatsLogInput => log.kind === "stats";

const withoutPeer = <S extends StatInput>(stat: S): S => ({
  ...stat,
  tags: stat.tags.filter(({ name }) => name !== RAW.peer && name !== "source_principal"),
});
