import { parseCidr } from "../../../base/address.ts";
import { msOfDuration } from "../../../base/duration.ts";
import { literalValueFault } from "../../../config/checks/header.ts";
import type { ConfigObject } from "../../../config/object.ts";
import type { Query } from "../../../engine/index.ts";
import type { AccessLogInput, WrittenLogInput } from "../../../envoy/filters/access-log.ts";
import type {
  ClientCertDetails,
  ForwardClientCert,
  HttpManagerInput,
  HttpSettings,
} from "../../../envoy/filters/http-connection-manager.ts";
import type { TcpProxyInput } from "../../../envoy/filters/tcp-proxy.ts";
import { PLAIN_HTTP, PLAIN_HTTP_FROM_1_0 } from "../../../envoy/listener/alpn.ts";
import {
  type MeshConfig,
  MeshConfig_ProxyPathNormalization_NormalizationType as Normalization,
} from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { MeshNetworks } from "../../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import type { ProxyConfig, ProxyConfig_ProxyHeaders_Server } from "../../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { ForwardClientCertDetails } from "../../../gen/istio/mesh/v1alpha1/shared_pb.js";
import type { Telemetry } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { GenerateContext } from "../../context.ts";
import { rulesForSide } from "../../extensions/chain-extensions.ts";
import { type ExtensionObject, type ExtensionRule, extensionRule } from "../../extensions/extension-rule.ts";
import { proxyConfigOf } from "../../proxy-config.ts";
import type { SettingsTraits, Side } from "../traits.ts";
import { accessLogsOf } from "./access-logs.ts";
import { connectionOf } from "./connection-settings.ts";
import { providerLookup } from "./provider-target.ts";
import { metricLogsOf } from "./standard-metrics.ts";
import { tracingOf } from "./tracing.ts";

/** Settings that all filter chains of one side of a proxy share. */
export interface ChainSettings {
  readonly http: HttpSettings;
  /** Logs of connections; those of requests are among the settings for HTTP. */
  readonly accessLogs: readonly AccessLogInput[];
  /** Idle TCP connections are closed after this; absent = Envoy's default of an hour. */
  readonly idleTimeoutMs: number | undefined;
  /** HTTP/1.0 clients are served (node metadata HTTP10, or PILOT_HTTP10 for all). */
  readonly acceptHttp10: boolean;
  /** What plain HTTP is known by where ports do not declare it; HTTP/1.0 only where PILOT_HTTP10 says so for all, as in Istio. */
  readonly plainHttp: readonly string[];
  /** Value of header `server`; undefined: Envoy's own. */
  readonly server: string | "leave" | undefined;
  readonly clientCert: ClientCertDetails;
  readonly trustedHops: number;
  readonly proxyProtocol: boolean;
  /** How long protocol detection may wait; 0 = as long as it takes. */
  readonly inspectionTimeoutMs: number;
  /** Logs of connections that no filter chain took: the same, unless the mesh wants none of them. */
  readonly listenerAccessLogs: readonly WrittenLogInput[];
  /** Bytes held for one connection before reading stops; absent = Envoy's default of 1 MiB. */
  readonly bufferLimitBytes: number | undefined;
  /** WasmPlugins and TrafficExtensions that are for this side. */
  readonly extensions: readonly ExtensionRule[];
  /** Protocols that connections are decoded in. */
  readonly decodes: readonly ("mongo" | "redis")[];
  /** Ranges of the mesh's networks, for connection managers that look at the client's address. */
  readonly internalRanges: readonly string[] | undefined;
}

/** How what a port speaks is decoded in passing, if it is. */
export function decodeOf(protocol: string, { decodes }: Pick<ChainSettings, "decodes">): Pick<TcpProxyInput, "decode"> {
  const decode = decodes.find((one) => one === protocol.toLowerCase());
  return decode === undefined ? {} : { decode };
}

export type SettingsKey = SettingsTraits & { readonly side: Side };

/** Settings by what they come from: MeshConfig, ProxyConfig, Telemetry. */
export function defineChainSettings(
  ctx: Pick<GenerateContext, "engine" | "inputs" | "registry" | "settings">,
): Query<SettingsKey, ChainSettings> {
  return ctx.engine.query<SettingsKey, ChainSettings>({
    name: "chainSettings",
    id: JSON.stringify,
    compute: (key) => {
      const mesh = ctx.inputs.mesh.get("mesh");
      if (mesh === undefined) throw new Error("there is no MeshConfig");
      const telemetry = key.telemetry
        .map((name) => ctx.inputs.objects.get(name) as ConfigObject<Telemetry> | undefined)
        .flatMap((object) => (object === undefined ? [] : [object.spec]));
      const extensions = key.extensions
        .map((name) => ctx.inputs.objects.get(name) as ExtensionObject | undefined)
        .flatMap((object) => (object === undefined ? [] : [extensionRule(object)]));
      return settingsOf({ mesh, telemetry, extensions, key, networks: ctx.inputs.networks.get("networks"), ctx });
    },
  });
}

/** What is said of HTTP/1, if anything. */
export function http1Options({ acceptHttp10 }: ChainSettings, own: HttpManagerInput["http1"] = undefined): Pick<HttpManagerInput, "http1"> {
  if (!acceptHttp10) return own === undefined ? {} : { http1: own };
  return { http1: { ...own, acceptHttp10: true } };
}

interface SettingsSources {
  readonly mesh: MeshConfig;
  readonly networks: MeshNetworks | undefined;
  readonly telemetry: readonly Telemetry[];
  readonly extensions: readonly ExtensionRule[];
  readonly key: SettingsKey;
  readonly ctx: Pick<GenerateContext, "registry" | "settings">;
}

function settingsOf({ mesh, networks, telemetry, extensions, key, ctx }: SettingsSources): ChainSettings {
  const { http10, traceSampling, sessions, mongoFilter, redisFilter } = ctx.settings;
  const lookup = providerLookup(ctx, key.unreachable);
  const proxyConfig = proxyConfigOf(mesh, key.proxyConfig);
  const headers = proxyConfig?.proxyHeaders;
  const hasService = key.logService === true && (proxyConfig?.envoyAccessLogService?.address ?? "") !== "";
  const logs = (service: "http" | "tcp" | "listener") =>
    accessLogsOf({ mesh, telemetry, side: key.side, lookup, ...(hasService && { service }) });
  const metrics = key.standardMetrics === true ? metricLogsOf({ mesh, telemetry, side: key.side }) : undefined;
  const idleTimeoutMs = key.idleTimeout === undefined ? undefined : milliseconds(key.idleTimeout);
  const limits = proxyConfig?.connectionSettings ?? mesh.defaultConfig?.connectionSettings;
  const connection = connectionOf(limits, key.side, idleTimeoutMs);
  return {
    http: {
      pathNormalization: PATH_NORMALIZATION[mesh.pathNormalization?.normalization ?? Normalization.DEFAULT],
      accessLogs: [...logs("http"), ...(metrics?.http ?? [])],
      ...tracingOf({ mesh, proxyConfig, telemetry, side: key.side, workload: key.traced, lookup, defaultSampling: traceSampling }),
      generateRequestId: headers?.requestId?.disabled !== true,
      suppressEnvoyHeaders: headers?.envoyDebugHeaders?.disabled === true,
      ...(sessions.enabled && key.side !== "server" && { sessions: true }),
      ...(Object.keys(connection.http).length > 0 && { connection: connection.http }),
      ...(headers?.preserveHttp1HeaderCase === true && { preserveHeaderCase: true }),
      ...(headers?.xForwardedPort?.enabled === true && { forwardPort: true }),
    },
    accessLogs: [...logs("tcp"), ...(metrics?.tcp ?? [])],
    listenerAccessLogs: mesh.disableEnvoyListenerLog ? [] : logs("listener"),
    idleTimeoutMs,
    acceptHttp10: key.acceptHttp10 || http10,
    plainHttp: http10 ? PLAIN_HTTP_FROM_1_0 : PLAIN_HTTP,
    server: serverOf(headers?.server, key.side),
    clientCert: clientCertOf(proxyConfig, key.side),
    trustedHops: proxyConfig?.gatewayTopology?.numTrustedProxies ?? 0,
    proxyProtocol: proxyConfig?.gatewayTopology?.proxyProtocol !== undefined,
    inspectionTimeoutMs: mesh.protocolDetectionTimeout === undefined ? 0 : msOfDuration(mesh.protocolDetectionTimeout),
    bufferLimitBytes: connection.bufferLimitBytes,
    extensions: rulesForSide(extensions, key.side),
    decodes: [...(mongoFilter ? (["mongo"] as const) : []), ...(redisFilter ? (["redis"] as const) : [])],
    internalRanges: internalRangesOf(networks),
  };
}

/** The header that says who answers; one that no response may hold is passed over. */
function serverOf(header: ProxyConfig_ProxyHeaders_Server | undefined, side: Side): string | undefined {
  if (header?.disabled === true) return "leave";
  const value = header?.value ?? "";
  if (value !== "" && literalValueFault(value) === undefined) return value;
  return side === "client" ? undefined : "istio-envoy";
}

/** Ranges that the mesh's networks are said to consist of. Those found by registry have no range. */
function internalRangesOf(networks: MeshNetworks | undefined): readonly string[] | undefined {
  const ranges = Object.values(networks?.networks ?? {}).flatMap(({ endpoints }) =>
    endpoints.flatMap(({ ne }) => (ne.case === "fromCidr" && parseCidr(ne.value) !== undefined ? [ne.value] : [])),
  );
  return ranges.length === 0 ? undefined : [...new Set(ranges)].sort();
}

const PATH_NORMALIZATION = {
  [Normalization.DEFAULT]: "base",
  [Normalization.NONE]: "none",
  [Normalization.BASE]: "base",
  [Normalization.MERGE_SLASHES]: "mergeSlashes",
  [Normalization.DECODE_AND_MERGE_SLASHES]: "decodeAndMergeSlashes",
} as const satisfies Record<Normalization, HttpSettings["pathNormalization"]>;

const FORWARD = {
  [ForwardClientCertDetails.UNDEFINED]: undefined,
  [ForwardClientCertDetails.SANITIZE]: "SANITIZE",
  [ForwardClientCertDetails.FORWARD_ONLY]: "FORWARD_ONLY",
  [ForwardClientCertDetails.APPEND_FORWARD]: "APPEND_FORWARD",
  [ForwardClientCertDetails.SANITIZE_SET]: "SANITIZE_SET",
  [ForwardClientCertDetails.ALWAYS_FORWARD_ONLY]: "ALWAYS_FORWARD_ONLY",
} as const satisfies Record<ForwardClientCertDetails, ForwardClientCert | undefined>;

/** A gateway starts the list of client certificates anew, since anybody may be in front of it; a sidecar adds to it. */
function clientCertOf(config: ProxyConfig | undefined, side: Side): ClientCertDetails {
  const add = config?.proxyHeaders?.setCurrentClientCertDetails;
  if (side === "gateway") {
    const forward = FORWARD[config?.gatewayTopology?.forwardClientCertDetails ?? ForwardClientCertDetails.UNDEFINED] ?? "SANITIZE_SET";
    const adds = forward === "APPEND_FORWARD" || forward === "SANITIZE_SET";
    return { forward, add: adds ? { subject: true, cert: true, dns: true, uri: true, chain: false } : undefined };
  }
  const forward = FORWARD[config?.proxyHeaders?.forwardedClientCert ?? ForwardClientCertDetails.UNDEFINED];
  return {
    forward: forward ?? "APPEND_FORWARD",
    add: {
      subject: add?.subject ?? true,
      uri: add?.uri ?? true,
      dns: add?.dns ?? true,
      cert: add?.cert ?? false,
      chain: add?.chain ?? false,
    },
  };
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A Go duration such as `1h30m`, as node metadata carries it; undefined where it is none. */
function milliseconds(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== text) return undefined;
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNIT_MS[unit ?? ""] ?? 0), 0);
}
