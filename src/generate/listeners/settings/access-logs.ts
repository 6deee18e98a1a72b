import type { JsonObject } from "@bufbuild/protobuf";
import type { AccessLogInput } from "../../../envoy/filters/access-log.ts";
import {
  type MeshConfig,
  MeshConfig_AccessLogEncoding,
  type MeshConfig_ExtensionProvider,
} from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { Telemetry } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { Side } from "../traits.ts";
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

/** Access logs of one side: what Telemetry objects say, and where none says anything the mesh's log file. */
export function accessLogsOf(mesh: MeshConfig, telemetry: readonly Telemetry[], side: Side): readonly AccessLogInput[] {
  const defaults = mesh.defaultProviders?.accessLogging ?? [];
  if (telemetry.every(({ accessLogging }) => accessLogging.length === 0) && defaults.length === 0) return meshLogFile(mesh);
  const chosen = chosenProviders(telemetry, defaults, side);
  return [...chosen].flatMap(([name, expression]) => {
    const provider = mesh.extensionProviders.find((one) => one.name === name);
    const log = provider === undefined ? undefined : providerLog(mesh, provider);
    return log === undefined ? [] : [expression === undefined ? log : { ...log, expression }];
  });
}

/**
 * Providers in force and their filters. A level that names providers replaces those of the levels above; one that names none speaks of the
 * providers it inherits, to disable or filter them.
 */
function chosenProviders(levels: readonly Telemetry[], defaults: readonly string[], side: Side): ReadonlyMap<string, string | undefined> {
  let chosen = new Map<string, string | undefined>(defaults.map((name) => [name, undefined]));
  for (const { accessLogging } of levels) {
    const rules = accessLogging.filter(({ match }) => appliesTo(match?.mode, side));
    const inherited = chosen;
    if (rules.some(({ providers }) => providers.length > 0)) chosen = new Map();
    for (const { providers, disabled, filter } of rules) {
      for (const name of providers.length > 0 ? providers.map((provider) => provider.name) : inherited.keys()) {
        if (disabled === true) chosen.delete(name);
        else chosen.set(name, filter?.expression || undefined);
      }
    }
  }
  return chosen;
}

function meshLogFile(mesh: MeshConfig): readonly AccessLogInput[] {
  if (mesh.accessLogFile === "") return [];
  return [{ kind: "file", path: mesh.accessLogFile, format: meshFormat(mesh), omitEmptyValues: false }];
}

/** Istio's reference: a newline is added to formats that do not end with one. */
const asLine = (format: string): string => (format.endsWith("\n") ? format : `${format}\n`);

function meshFormat(mesh: MeshConfig): { readonly text: string } | { readonly json: JsonObject } {
  if (mesh.accessLogEncoding !== MeshConfig_AccessLogEncoding.JSON) return { text: asLine(mesh.accessLogFormat || DEFAULT_TEXT) };
  return { json: mesh.accessLogFormat === "" ? DEFAULT_JSON : jsonFormat(mesh.accessLogFormat) };
}

/** A format that is not JSON leaves the default in force: a log line too many fields long is better than a proxy without configuration. */
function jsonFormat(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return DEFAULT_JSON;
  }
}

function providerLog(mesh: MeshConfig, { provider }: MeshConfig_ExtensionProvider): AccessLogInput | undefined {
  switch (provider.case) {
    case "envoyFileAccessLog": {
      const { path, logFormat, omitEmptyValues } = provider.value;
      const labels = logFormat?.logFormat.case === "labels" ? logFormat.logFormat.value : undefined;
      const text = logFormat?.logFormat.case === "text" ? logFormat.logFormat.value : "";
      const format =
        labels !== undefined
          ? { json: Object.keys(labels).length === 0 ? DEFAULT_JSON : labels }
          : text !== ""
            ? { text: asLine(text) }
            : meshFormat(mesh);
      return { kind: "file", path: path || "/dev/stdout", format, omitEmptyValues };
    }
    case "envoyHttpAls":
    case "envoyTcpAls": {
      const { service, port, logName, filterStateObjectsToLog } = provider.value;
      const http = provider.case === "envoyHttpAls" ? provider.value : undefined;
      return {
        kind: http === undefined ? "grpcTcp" : "grpcHttp",
        logName: logName || (http === undefined ? "tcp_envoy_accesslog" : "http_envoy_accesslog"),
        ...providerCluster(service, port),
        filterState: filterStateObjectsToLog.length > 0 ? filterStateObjectsToLog : PEER_OBJECTS,
        requestHeaders: http?.additionalRequestHeadersToLog ?? [],
        responseHeaders: http?.additionalResponseHeadersToLog ?? [],
        responseTrailers: http?.additionalResponseTrailersToLog ?? [],
      };
    }
    case "envoyOtelAls": {
      const { service, port, logName, logFormat } = provider.value;
      const attributes = Object.entries(logFormat?.labels ?? {}).flatMap(([key, value]) =>
        typeof value === "string" ? [{ key, value }] : [],
      );
      return {
        kind: "otel",
        logName: logName || "otel_envoy_accesslog",
        ...providerCluster(service, port),
        filterState: PEER_OBJECTS,
        body: logFormat?.text || DEFAULT_TEXT,
        attributes: attributes.sort((a, b) => (a.key < b.key ? -1 : 1)),
      };
    }
    default:
      return undefined;
  }
}

/** Cluster and authority of a provider's service, written `host` or `namespace/host`. */
export function providerCluster(service: string, port: number): { readonly cluster: string; readonly authority: string } {
  const host = service.slice(service.indexOf("/") + 1);
  return { cluster: `outbound|${port}||${host}`, authority: host };
}
