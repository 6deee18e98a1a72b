import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ACCESS_LOG_CLUSTER } from "../../../envoy/bootstrap/remote-services.ts";
import type { WrittenLogInput } from "../../../envoy/filters/access-log.ts";
import {
  type MeshConfig,
  MeshConfig_AccessLogEncoding,
  type MeshConfig_ExtensionProvider,
} from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { AccessLogging, Telemetry } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import { logFormatFault } from "../../../model/format-operators.ts";
import type { Side } from "../traits.ts";
import { providerNamed } from "./extension-provider.ts";
import type { ProviderLookup } from "./provider-target.ts";
import { appliesTo } from "./telemetry.ts";

/** The fields of a log line where a mesh does not name its own, in the order of Istio's text format ("Envoy Access Logs"). */
const DEFAULT_TEXT = [
  "[%START_TIME%]",
  '"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%"',
  "%RESPONSE_CODE%",
  "%RESPONSE_FLAGS%",
  "%RESPONSE_CODE_DETAILS%",
  "%CONNECTION_TERMINATION_DETAILS%",
  '"%UPSTREAM_TRANSPORT_FAILURE_REASON%"',
  "%BYTES_RECEIVED%",
  "%BYTES_SENT%",
  "%DURATION%",
  "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
  '"%REQ(X-FORWARDED-FOR)%"',
  '"%REQ(USER-AGENT)%"',
  '"%REQ(X-REQUEST-ID)%"',
  '"%REQ(:AUTHORITY)%"',
  '"%UPSTREAM_HOST%"',
  "%UPSTREAM_CLUSTER_RAW%",
  "%UPSTREAM_LOCAL_ADDRESS%",
  "%DOWNSTREAM_LOCAL_ADDRESS%",
  "%DOWNSTREAM_REMOTE_ADDRESS%",
  "%REQUESTED_SERVER_NAME%",
  "%ROUTE_NAME%\n",
].join(" ");

/** The same fields by name, for JSON. */
const DEFAULT_JSON: JsonObject = {
  authority: "%REQ(:AUTHORITY)%",
  bytes_received: "%BYTES_RECEIVED%",
  bytes_sent: "%BYTES_SENT%",
  connection_termination_details: "%CONNECTION_TERMINATION_DETAILS%",
  downstream_local_address: "%DOWNSTREAM_LOCAL_ADDRESS%",
  downstream_remote_address: "%DOWNSTREAM_REMOTE_ADDRESS%",
  duration: "%DURATION%",
  method: "%REQ(:METHOD)%",
  path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
  protocol: "%PROTOCOL%",
  request_id: "%REQ(X-REQUEST-ID)%",
  requested_server_name: "%REQUESTED_SERVER_NAME%",
  response_code: "%RESPONSE_CODE%",
  response_code_details: "%RESPONSE_CODE_DETAILS%",
  response_flags: "%RESPONSE_FLAGS%",
  route_name: "%ROUTE_NAME%",
  start_time: "%START_TIME%",
  upstream_cluster: "%UPSTREAM_CLUSTER_RAW%",
  upstream_host: "%UPSTREAM_HOST%",
  upstream_local_address: "%UPSTREAM_LOCAL_ADDRESS%",
  upstream_service_time: "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
  upstream_transport_failure_reason: "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
  user_agent: "%REQ(USER-AGENT)%",
  x_forwarded_for: "%REQ(X-FORWARDED-FOR)%",
};

/** Objects that peers left about themselves on a connection: sent along unless a provider names others. */
const PEER_OBJECTS = ["upstream_peer", "downstream_peer"];
const ALL_PEER_OBJECTS = [
  ...PEER_OBJECTS,
  "wasm.upstream_peer",
  "wasm.upstream_peer_id",
  "wasm.downstream_peer",
  "wasm.downstream_peer_id",
];

export interface AccessLogSources {
  readonly mesh: MeshConfig;
  readonly telemetry: readonly Telemetry[];
  readonly side: Side;
  readonly lookup: ProviderLookup;
  /** What is logged, for proxies whose bootstrap has an access log service (ProxyConfig envoyAccessLogService) and that are to use it. */
  readonly service?: "http" | "tcp" | "listener";
}

/** Access logs of one side: what Telemetry objects say, and where none says anything that can be done the mesh's log file and service. */
export function accessLogsOf({ mesh, telemetry, side, lookup, service }: AccessLogSources): readonly WrittenLogInput[] {
  const defaults = mesh.defaultProviders?.accessLogging ?? [];
  const levels = telemetry.filter(({ accessLogging }) => accessLogging.length > 0);
  if (levels.length === 0 && defaults.length === 0) return meshLogs(mesh, service);
  const logs = [...chosenProviders(levels, defaults, side)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, choice]) => {
      const provider = providerNamed(mesh, name);
      const log = provider === undefined ? undefined : providerLog(mesh, provider, lookup);
      return log === undefined ? [] : [{ log, choice }];
    });
  if (logs.length === 0) return meshLogs(mesh, service);
  return logs.flatMap(({ log, choice }) =>
    choice.disabled ? [] : [choice.expression === undefined ? log : { ...log, expression: choice.expression }],
  );
}

interface LogChoice {
  readonly disabled: boolean;
  readonly expression: string | undefined;
}

/**
 * Providers in force and their filters, by Istio's rules: the lowest level that names providers for a side decides which count; a rule
 * that names none speaks of those the rule before it spoke of; the filter of a provider is the last that a rule naming it has.
 */
function chosenProviders(levels: readonly Telemetry[], defaults: readonly string[], side: Side): ReadonlyMap<string, LogChoice> {
  const namesOf = ({ providers }: AccessLogging): readonly string[] => providers.map(({ name }) => name);
  const applies = ({ match }: AccessLogging): boolean => appliesTo(match?.mode, side);
  const named = levels.map(({ accessLogging }) => accessLogging.filter(applies).flatMap(namesOf)).filter((names) => names.length > 0);
  const inForce = new Set(levels.length === 0 ? defaults : (named.at(-1) ?? defaults));
  const rules = levels.flatMap(({ accessLogging }) => accessLogging);
  const filters = new Map(
    rules.filter(applies).flatMap((rule) => namesOf(rule).map((name) => [name, rule.filter?.expression || undefined] as const)),
  );
  const chosen = new Map<string, LogChoice>(levels.length === 0 ? defaults.map((name) => [name, LOGGED]) : []);
  let spokenOf = defaults;
  for (const rule of rules) {
    spokenOf = rule.providers.length > 0 ? namesOf(rule) : spokenOf;
    if (!applies(rule)) continue;
    for (const name of spokenOf) {
      if (inForce.has(name)) chosen.set(name, { disabled: rule.disabled === true, expression: filters.get(name) });
    }
  }
  return chosen;
}

const LOGGED: LogChoice = { disabled: false, expression: undefined };

/** The service is sent to only by proxies whose bootstrap has its cluster: Envoy refuses a listener that names one it does not know. */
function meshLogs(mesh: MeshConfig, service: AccessLogSources["service"]): readonly WrittenLogInput[] {
  return [
    ...(mesh.accessLogFile === ""
      ? []
      : [{ kind: "file" as const, path: mesh.accessLogFile, format: meshFormat(mesh), omitEmptyValues: false }]),
    ...(service === undefined ? [] : [serviceLog(service)]),
  ];
}

const serviceLog = (what: "http" | "tcp" | "listener"): WrittenLogInput => ({
  kind: what === "http" ? "grpcHttp" : "grpcTcp",
  logName: `${what}_envoy_accesslog`,
  cluster: ACCESS_LOG_CLUSTER,
  authority: "",
  filterState: ALL_PEER_OBJECTS,
  requestHeaders: [],
  responseHeaders: [],
  responseTrailers: [],
});

/** Istio's reference: a newline is added to formats that do not end with one. One that Envoy would refuse leaves the default in force. */
function asLine(format: string): string {
  const text = bodyOf(format);
  return text.endsWith("\n") ? text : `${text}\n`;
}

const bodyOf = (format: string): string => (format === "" || logFormatFault(format) !== undefined ? DEFAULT_TEXT : format);

/** A JSON format without the texts that Envoy would refuse. */
const withoutFaults = (json: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(json).flatMap(([key, value]) => sound(value).map((kept) => [key, kept] as const)));

function sound(value: JsonValue): readonly JsonValue[] {
  if (typeof value === "string") return logFormatFault(value) === undefined ? [value] : [];
  if (Array.isArray(value)) return [value.flatMap(sound)];
  return [typeof value === "object" && value !== null ? withoutFaults(value) : value];
}

function meshFormat(mesh: MeshConfig): { readonly text: string } | { readonly json: JsonObject } {
  if (mesh.accessLogEncoding !== MeshConfig_AccessLogEncoding.JSON) return { text: asLine(mesh.accessLogFormat || DEFAULT_TEXT) };
  return { json: mesh.accessLogFormat === "" ? DEFAULT_JSON : jsonFormat(mesh.accessLogFormat) };
}

/** A format that is not JSON leaves the default in force: a log line too many fields long is better than a proxy without configuration. */
function jsonFormat(text: string): JsonObject {
  try {
    return withoutFaults(JSON.parse(text) as JsonObject);
  } catch {
    return DEFAULT_JSON;
  }
}

/** Only the provider every mesh has takes its format from the mesh's own settings, and only where it says nothing itself. */
const BUILT_IN = "envoy";

function providerLog(
  mesh: MeshConfig,
  { name, provider }: MeshConfig_ExtensionProvider,
  lookup: ProviderLookup,
): WrittenLogInput | undefined {
  switch (provider.case) {
    case "envoyFileAccessLog": {
      const { path, logFormat, omitEmptyValues } = provider.value;
      const labels = logFormat?.logFormat.case === "labels" ? logFormat.logFormat.value : undefined;
      const text = logFormat?.logFormat.case === "text" ? logFormat.logFormat.value : "";
      const format =
        labels !== undefined
          ? { json: Object.keys(labels).length === 0 ? DEFAULT_JSON : withoutFaults(labels) }
          : text !== ""
            ? { text: asLine(text) }
            : name === BUILT_IN && !omitEmptyValues
              ? meshFormat(mesh)
              : { text: DEFAULT_TEXT };
      return { kind: "file", path: path || "/dev/stdout", format, omitEmptyValues };
    }
    case "envoyHttpAls":
    case "envoyTcpAls": {
      const { service, port, logName, filterStateObjectsToLog } = provider.value;
      const http = provider.case === "envoyHttpAls" ? provider.value : undefined;
      const target = lookup(service, port);
      if (target === undefined) return undefined;
      return {
        kind: http === undefined ? "grpcTcp" : "grpcHttp",
        logName: logName || (http === undefined ? "tcp_envoy_accesslog" : "http_envoy_accesslog"),
        cluster: target.cluster,
        authority: target.host,
        filterState: filterStateObjectsToLog.length > 0 ? filterStateObjectsToLog : PEER_OBJECTS,
        requestHeaders: http?.additionalRequestHeadersToLog ?? [],
        responseHeaders: http?.additionalResponseHeadersToLog ?? [],
        responseTrailers: http?.additionalResponseTrailersToLog ?? [],
      };
    }
    case "envoyOtelAls": {
      const { service, port, logName, logFormat } = provider.value;
      const target = lookup(service, port);
      if (target === undefined) return undefined;
      // A label that is no text is there without one, as in Istio.
      const attributes = Object.entries(withoutFaults(logFormat?.labels ?? {})).map(([key, value]) => ({
        key,
        value: typeof value === "string" ? value : "",
      }));
      return {
        kind: "otel",
        logName: logName || "otel_envoy_accesslog",
        cluster: target.cluster,
        authority: target.host,
        filterState: ALL_PEER_OBJECTS,
        body: logFormat === undefined ? DEFAULT_TEXT : bodyOf(logFormat.text),
        attributes: attributes.sort((a, b) => (a.key < b.key ? -1 : 1)),
      };
    }
    default:
      return undefined;
  }
}
