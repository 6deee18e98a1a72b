import type { Duration } from "@bufbuild/protobuf/wkt";
import { quote } from "../../base/quote.ts";
import type { ProxyConfig, ProxyConfig_ConnectionSettings } from "../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { AuthenticationPolicy, type PrivateKeyProvider, type Tracing } from "../../gen/istio/mesh/v1alpha1/shared_pb.js";
import { isAddress, splitHostPort } from "../checks/address.ts";
import { checkClientTls } from "../checks/client-tls.ts";
import { durationFault, millisOf, wholeSecondsFault } from "../checks/duration.ts";
import { literalValueFault } from "../checks/header.ts";
import { fqdnFault } from "../checks/host-name.ts";
import type { Place } from "../checks/place.ts";
import { portFault } from "../checks/port.ts";
import { syntaxFault } from "../checks/regex.ts";

/** The ProxyConfig of a mesh, defaults applied, by the rules of Istio's mesh validation. */
export function validateProxyConfig(config: ProxyConfig, place: Place): void {
  if (config.configPath === "") place.in("configPath").fault("field.required", "must be set");
  if (config.binaryPath === "") place.in("binaryPath").fault("field.required", "must be set");
  validateClusterName(config.clusterName, place);
  validateDrainDuration(config.drainDuration, place.in("drainDuration"));
  if (config.discoveryAddress === "") place.in("discoveryAddress").fault("field.required", "must be set");
  else place.in("discoveryAddress").check("field.host", proxyAddressFault(config.discoveryAddress));
  for (const field of ["statsdUdpAddress", "envoyMetricsServiceAddress"] as const) {
    if (config[field] !== "") place.in(field).check("field.host", proxyAddressFault(config[field]));
  }
  const statsd = splitHostPort(config.statsdUdpAddress)?.host;
  if (statsd !== undefined && !isAddress(statsd))
    place.in("statsdUdpAddress").fault("field.ineffective", "must have an IP address: Envoy looks no names up for it");
  for (const field of ["envoyMetricsService", "envoyAccessLogService"] as const) {
    const address = config[field]?.address ?? "";
    if (address !== "") place.in(field, "address").check("field.host", proxyAddressFault(address));
  }
  place.in("proxyAdminPort").check("field.port", portFault(config.proxyAdminPort));
  place.in("statusPort").check("field.port", portFault(config.statusPort));
  place.in("controlPlaneAuthPolicy").check("field.invalid", controlPlaneAuthPolicyFault(config.controlPlaneAuthPolicy));
  if (config.tracing !== undefined) validateTracing(config.tracing, place.in("tracing"));
  for (const [index, regex] of (config.proxyStatsMatcher?.inclusionRegexps ?? []).entries())
    place.in("proxyStatsMatcher", "inclusionRegexps", index).check("field.ineffective", syntaxFault(regex));
  place.in("proxyHeaders", "server", "value").check("field.ineffective", literalValueFault(config.proxyHeaders?.server?.value ?? ""));
  if (config.privateKeyProvider !== undefined) validatePrivateKeyProvider(config.privateKeyProvider, place.in("privateKeyProvider"));
  if (config.connectionSettings !== undefined) validateConnectionSettings(config.connectionSettings, place.in("connectionSettings"));
  if (config.proxyMetadata.ISTIO_META_DNS_AUTO_ALLOCATE !== undefined) {
    const message = "is deprecated: addresses are allocated by the control plane";
    place.in("proxyMetadata", "ISTIO_META_DNS_AUTO_ALLOCATE").fault("field.deprecated", message);
  }
}

/** An address a proxy calls: host:port, where the host is a name or an IP address. */
export function proxyAddressFault(text: string): string | undefined {
  const parts = splitHostPort(text);
  if (parts === undefined) return `${quote(text)} is not host:port`;
  if (!/^[+-]?\d+$/.test(parts.port)) return `port ${quote(parts.port)} of ${quote(text)} is not a number`;
  const fault = portFault(Number(parts.port));
  if (fault !== undefined) return fault;
  return fqdnFault(parts.host) === undefined || isAddress(parts.host)
    ? undefined
    : `${quote(parts.host)} is neither a host name nor an IP address`;
}

/** How long old connections may drain: a whole number of seconds, at least one, because Envoy takes it as a flag in seconds. */
export function validateDrainDuration(duration: Duration | undefined, place: Place): void {
  if (duration === undefined) place.fault("field.required", "must be set");
  else place.check("field.range", durationFault(duration) ?? wholeSecondsFault(duration));
}

/** Only the two policies that say something; INHERIT has nothing to inherit from. */
export const controlPlaneAuthPolicyFault = (policy: AuthenticationPolicy): string | undefined =>
  policy === AuthenticationPolicy.NONE || policy === AuthenticationPolicy.MUTUAL_TLS
    ? undefined
    : `${policy} is neither NONE nor MUTUAL_TLS`;

function validateClusterName(name: ProxyConfig["clusterName"], place: Place): void {
  if (name.case === undefined) place.fault("field.required", "one of serviceCluster and tracingServiceName must be set");
  if (name.case === "serviceCluster" && name.value === "") place.in("serviceCluster").fault("field.required", "must be set");
}

function validateTracing(tracing: Tracing, place: Place): void {
  if (tracing.tlsSettings !== undefined) checkClientTls(tracing.tlsSettings, "", place.in("tlsSettings"));
  const { tracer } = tracing;
  switch (tracer.case) {
    case "lightstep":
      place.in("lightstep", "address").check("field.host", proxyAddressFault(tracer.value.address));
      if (tracer.value.accessToken === "") place.in("lightstep", "accessToken").fault("field.required", "must be set");
      break;
    case "zipkin":
    case "datadog":
      place.in(tracer.case, "address").check("field.host", proxyAddressFault(tracer.value.address.replace("$(HOST_IP)", "127.0.0.1")));
      break;
    case "stackdriver":
    case "openCensusAgent":
    case undefined:
      break;
  }
}

function validatePrivateKeyProvider({ provider }: PrivateKeyProvider, place: Place): void {
  if (provider.case === undefined) {
    place.fault("field.required", "names no provider");
    return;
  }
  const delay = provider.value.pollDelay;
  const at = place.in(provider.case, "pollDelay");
  if (delay === undefined) at.fault("field.required", "must be set");
  else if (delay.seconds === 0n && delay.nanos === 0) at.fault("field.range", "must not be zero");
}

const LEAST_HTTP2_WINDOW = 65_535;
const DURATIONS = [
  "httpIdleTimeout",
  "httpMaxConnectionDuration",
  "httpDrainTimeout",
  "httpRequestTimeout",
  "httpRequestHeadersTimeout",
  "httpStreamIdleTimeout",
  "httpMaxStreamDuration",
] as const;
const LEAST = {
  listenerPerConnectionBufferLimitBytes: 0,
  clusterPerConnectionBufferLimitBytes: 0,
  httpMaxConcurrentStreams: 1,
  http2InitialStreamWindowSize: LEAST_HTTP2_WINDOW,
  http2InitialConnectionWindowSize: LEAST_HTTP2_WINDOW,
  listenerConnectionLimit: 1,
  globalDownstreamConnectionLimit: 1,
} as const satisfies { readonly [K in keyof ProxyConfig_ConnectionSettings]?: number };

/** Limits of client connections: timeouts are not negative, sizes and counts not below what Envoy takes. */
export function validateConnectionSettings(settings: ProxyConfig_ConnectionSettings, place: Place): void {
  for (const field of DURATIONS) {
    const duration = settings[field];
    if (duration !== undefined && millisOf(duration) < 0) place.in(field).fault("field.range", "must not be negative");
  }
  for (const [field, least] of Object.entries(LEAST)) {
    const value = settings[field as keyof typeof LEAST];
    if (value !== undefined && value < least) place.in(field).fault("field.range", `must be at least ${least}`);
  }
}
