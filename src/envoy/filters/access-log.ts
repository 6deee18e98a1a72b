import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  type AccessLog,
  type AccessLogFilter,
  AccessLogFilterSchema,
  AccessLogSchema,
} from "../../gen/envoy/config/accesslog/v3/accesslog_pb.js";
import { ApiVersion } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { type TypedExtensionConfig, TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import { FileAccessLogSchema } from "../../gen/envoy/extensions/access_loggers/file/v3/file_pb.js";
import { ExpressionFilterSchema } from "../../gen/envoy/extensions/access_loggers/filters/cel/v3/cel_pb.js";
import {
  type CommonGrpcAccessLogConfig,
  CommonGrpcAccessLogConfigSchema,
  HttpGrpcAccessLogConfigSchema,
  TcpGrpcAccessLogConfigSchema,
} from "../../gen/envoy/extensions/access_loggers/grpc/v3/als_pb.js";
import { OpenTelemetryAccessLogConfigSchema } from "../../gen/envoy/extensions/access_loggers/open_telemetry/v3/logs_service_pb.js";
import { anyOf } from "../../wire/encode.ts";
import { bothFilters, onlyAtEnd, type StatsLogInput, statsLog } from "./stats-log.ts";

/** One access log of a filter chain or listener. */
export type AccessLogInput = WrittenLogInput | StatsLogInput;

/** One that writes or sends what it logs. */
export type WrittenLogInput = FileLogInput | GrpcLogInput | OtelLogInput;

interface LogFilterInput {
  /** CEL expression over Envoy's attributes that a request must satisfy to be logged (Telemetry accessLogging.filter). */
  readonly expression?: string;
}

export interface FileLogInput extends LogFilterInput {
  readonly kind: "file";
  readonly path: string;
  readonly format: { readonly text: string } | { readonly json: JsonObject };
  readonly omitEmptyValues: boolean;
}

/** Logs sent to a collector over Envoy's access log service. */
export interface GrpcLogInput extends LogFilterInput {
  readonly kind: "grpcHttp" | "grpcTcp";
  readonly logName: string;
  readonly cluster: string;
  readonly authority: string;
  readonly filterState: readonly string[];
  readonly requestHeaders: readonly string[];
  readonly responseHeaders: readonly string[];
  readonly responseTrailers: readonly string[];
}

/** Logs sent to an OpenTelemetry collector. */
export interface OtelLogInput extends LogFilterInput {
  readonly kind: "otel";
  readonly logName: string;
  readonly cluster: string;
  readonly authority: string;
  readonly filterState: readonly string[];
  readonly body: string;
  readonly attributes: readonly { readonly key: string; readonly value: string }[];
}

/** Access logs of a connection manager. */
export const accessLogs = (logs: readonly AccessLogInput[]): AccessLog[] =>
  logs.map((log) => (log.kind === "stats" ? statsLog(log) : accessLog(log, expressionFilter(log))));

/** Whether something is to be counted at the moment at which a connection to its destination stands: Envoy is to say when, then. */
export const countsWhenConnected = (logs: readonly AccessLogInput[]): boolean =>
  logs.some((log) => log.kind === "stats" && log.at === "connected");

/** Whether the client's certificate must be known at that moment. */
export const countsClientsWhenConnected = (logs: readonly AccessLogInput[]): boolean =>
  logs.some(
    (log) =>
      log.kind === "stats" &&
      log.at === "connected" &&
      log.counters.some(({ tags }) => tags.some(({ format }) => format.startsWith("%DOWNSTREAM_PEER_"))),
  );

/** The interval at which connections are to be reported while they last; undefined where they are not. */
export const reportInterval = (logs: readonly AccessLogInput[]): number | undefined =>
  logs.flatMap((log) => (log.kind === "stats" && log.at === "report" ? [log.reportMs] : []))[0];

/** Access logs of a TCP proxy. Where it speaks of connections before their end too, only what counts is to hear of that. */
export function connectionLogs(logs: readonly AccessLogInput[]): AccessLog[] {
  if (!countsWhenConnected(logs) && reportInterval(logs) === undefined) return accessLogs(logs);
  return logs.map((log) => {
    if (log.kind === "stats") return statsLog(log);
    const own = expressionFilter(log);
    return accessLog(log, own === undefined ? onlyAtEnd() : bothFilters(onlyAtEnd(), own));
  });
}

/**
 * The same logs on a listener, for what no filter chain took: Envoy would otherwise drop such connections without a trace. Only those are
 * logged there (response flag NR), since all others are logged by their chain.
 */
export function listenerAccessLogs(logs: readonly WrittenLogInput[]): AccessLog[] {
  const noRoute = create(AccessLogFilterSchema, { filterSpecifier: { case: "responseFlagFilter", value: { flags: ["NR"] } } });
  return logs.map((log) => {
    const own = expressionFilter(log);
    return accessLog(log, own === undefined ? noRoute : bothFilters(noRoute, own));
  });
}

function accessLog(log: WrittenLogInput, filter: AccessLogFilter | undefined): AccessLog {
  return create(AccessLogSchema, { ...configuration(log), ...(filter !== undefined && { filter }) });
}

function configuration(log: WrittenLogInput) {
  switch (log.kind) {
    case "file":
      return named("envoy.access_loggers.file", anyOf(FileAccessLogSchema, fileLog(log)));
    case "grpcHttp":
      return named("envoy.access_loggers.http_grpc", anyOf(HttpGrpcAccessLogConfigSchema, httpLog(log)));
    case "otel":
      return named("envoy.access_loggers.open_telemetry", anyOf(OpenTelemetryAccessLogConfigSchema, otelLog(log)));
    case "grpcTcp":
      return named(
        "envoy.tcp_grpc_access_log",
        anyOf(TcpGrpcAccessLogConfigSchema, create(TcpGrpcAccessLogConfigSchema, { commonConfig: collector(log) })),
      );
  }
}

const named = (name: string, value: ReturnType<typeof anyOf>) => ({ name, configType: { case: "typedConfig", value } as const });

function fileLog({ path, format, omitEmptyValues }: FileLogInput) {
  const fixed = { omitEmptyValues, formatters: formattersFor("text" in format ? format.text : JSON.stringify(format.json)) };
  const logFormat =
    "text" in format
      ? { ...fixed, format: { case: "textFormatSource", value: { specifier: { case: "inlineString", value: format.text } } } as const }
      : { ...fixed, format: { case: "jsonFormat", value: format.json } as const, jsonFormatOptions: { sortProperties: false } };
  return create(FileAccessLogSchema, { path, accessLogFormat: { case: "logFormat", value: logFormat } });
}

const httpLog = (log: GrpcLogInput) =>
  create(HttpGrpcAccessLogConfigSchema, {
    commonConfig: collector(log),
    additionalRequestHeadersToLog: [...log.requestHeaders],
    additionalResponseHeadersToLog: [...log.responseHeaders],
    additionalResponseTrailersToLog: [...log.responseTrailers],
  });

const otelLog = (log: OtelLogInput) =>
  create(OpenTelemetryAccessLogConfigSchema, {
    commonConfig: collector(log),
    disableBuiltinLabels: true,
    body: { value: { case: "stringValue", value: log.body } },
    ...(log.attributes.length > 0 && {
      attributes: { values: log.attributes.map(({ key, value }) => ({ key, value: { value: { case: "stringValue" as const, value } } })) },
    }),
    formatters: formattersFor(log.body + log.attributes.map(({ value }) => value).join()),
  });

const collector = (log: Pick<GrpcLogInput, "logName" | "cluster" | "authority" | "filterState">): CommonGrpcAccessLogConfig =>
  create(CommonGrpcAccessLogConfigSchema, {
    logName: log.logName,
    grpcService: { targetSpecifier: { case: "envoyGrpc", value: { clusterName: log.cluster, authority: log.authority } } },
    transportApiVersion: ApiVersion.V3,
    filterStateObjectsToLog: [...log.filterState],
  });

/** The one command of log formats that Envoy knows only where its extension is named. */
const WITHOUT_QUERY = create(TypedExtensionConfigSchema, {
  name: "envoy.formatter.req_without_query",
  typedConfig: { typeUrl: "type.googleapis.com/envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery", value: new Uint8Array() },
});

const formattersFor = (format: string): TypedExtensionConfig[] => (format.includes("%REQ_WITHOUT_QUERY(") ? [WITHOUT_QUERY] : []);

function expressionFilter({ expression }: LogFilterInput): AccessLogFilter | undefined {
  if (expression === undefined) return undefined;
  const config = anyOf(ExpressionFilterSchema, create(ExpressionFilterSchema, { expression }));
  return create(AccessLogFilterSchema, {
    filterSpecifier: {
      case: "extensionFilter",
      value: { name: "envoy.access_loggers.extension_filters.cel", configType: { case: "typedConfig", value: config } },
    },
  });
}
