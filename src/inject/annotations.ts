import { parseCidr } from "../base/address.ts";
import { isFields, type Named } from "./pod.ts";
import { canonicalQuantity } from "./quantity.ts";

/** Names of annotations and labels that injection reads or writes. */
export const ANNOTATION = {
  inject: "sidecar.istio.io/inject",
  status: "sidecar.istio.io/status",
  overrides: "proxy.istio.io/overrides",
  proxyConfig: "proxy.istio.io/config",
  templates: "inject.istio.io/templates",
  revision: "istio.io/rev",
  proxyImage: "sidecar.istio.io/proxyImage",
  proxyImageType: "sidecar.istio.io/proxyImageType",
  proxyCpu: "sidecar.istio.io/proxyCPU",
  proxyCpuLimit: "sidecar.istio.io/proxyCPULimit",
  proxyMemory: "sidecar.istio.io/proxyMemory",
  proxyMemoryLimit: "sidecar.istio.io/proxyMemoryLimit",
  logLevel: "sidecar.istio.io/logLevel",
  componentLogLevel: "sidecar.istio.io/componentLogLevel",
  agentLogLevel: "sidecar.istio.io/agentLogLevel",
  nativeSidecar: "sidecar.istio.io/nativeSidecar",
  interceptionMode: "sidecar.istio.io/interceptionMode",
  capNetBindService: "sidecar.istio.io/capNetBindService",
  bootstrapOverride: "sidecar.istio.io/bootstrapOverride",
  userVolume: "sidecar.istio.io/userVolume",
  userVolumeMount: "sidecar.istio.io/userVolumeMount",
  rewriteProbes: "sidecar.istio.io/rewriteAppHTTPProbers",
  statusPort: "status.sidecar.istio.io/port",
  readinessInitialDelay: "readiness.status.sidecar.istio.io/initialDelaySeconds",
  readinessPeriod: "readiness.status.sidecar.istio.io/periodSeconds",
  readinessFailures: "readiness.status.sidecar.istio.io/failureThreshold",
  includeOutboundIpRanges: "traffic.sidecar.istio.io/includeOutboundIPRanges",
  excludeOutboundIpRanges: "traffic.sidecar.istio.io/excludeOutboundIPRanges",
  includeInboundPorts: "traffic.sidecar.istio.io/includeInboundPorts",
  excludeInboundPorts: "traffic.sidecar.istio.io/excludeInboundPorts",
  includeOutboundPorts: "traffic.sidecar.istio.io/includeOutboundPorts",
  excludeOutboundPorts: "traffic.sidecar.istio.io/excludeOutboundPorts",
  excludeInterfaces: "traffic.sidecar.istio.io/excludeInterfaces",
  kubevirtInterfaces: "traffic.sidecar.istio.io/kubevirtInterfaces",
  rerouteInterfaces: "istio.io/reroute-virtual-interfaces",
  mergeMetrics: "prometheus.istio.io/merge-metrics",
  securePort: "prometheus.istio.io/secure-port",
  defaultContainer: "kubectl.kubernetes.io/default-container",
  defaultLogsContainer: "kubectl.kubernetes.io/default-logs-container",
  multusNetworks: "k8s.v1.cni.cncf.io/networks",
} as const;

/** Labels of pods and namespaces that decide on injection, and those that injection sets; names are Istio's. */
export const LABEL = {
  inject: "sidecar.istio.io/inject",
  revision: "istio.io/rev",
  tlsMode: "security.istio.io/tlsMode",
  tunnel: "networking.istio.io/tunnel",
  canonicalName: "service.istio.io/canonical-name",
  canonicalRevision: "service.istio.io/canonical-revision",
  workloadName: "service.istio.io/workload-name",
  network: "topology.istio.io/network",
} as const;

type Fault = string | undefined;

/** Each annotation whose value would otherwise reach a command line, a manifest or the kernel unchecked. */
const CHECKS: Readonly<Record<string, (value: string) => Fault>> = {
  [ANNOTATION.interceptionMode]: (value) =>
    ["REDIRECT", "TPROXY", "NONE"].includes(value) ? undefined : "must be REDIRECT, TPROXY or NONE",
  [ANNOTATION.statusPort]: portFault,
  [ANNOTATION.readinessInitialDelay]: wholeNumberFault,
  [ANNOTATION.readinessPeriod]: wholeNumberFault,
  [ANNOTATION.readinessFailures]: wholeNumberFault,
  [ANNOTATION.includeOutboundIpRanges]: (value) => (value === "*" ? undefined : rangesFault("includeIPRanges", value)),
  [ANNOTATION.excludeOutboundIpRanges]: (value) => rangesFault("excludeIPRanges", value),
  [ANNOTATION.includeInboundPorts]: (value) => (value === "*" ? undefined : portsFault(value)),
  [ANNOTATION.excludeInboundPorts]: portsFault,
  [ANNOTATION.includeOutboundPorts]: portsFault,
  [ANNOTATION.excludeOutboundPorts]: portsFault,
  [ANNOTATION.excludeInterfaces]: interfacesFault,
  [ANNOTATION.kubevirtInterfaces]: interfacesFault,
  [ANNOTATION.rerouteInterfaces]: interfacesFault,
  [ANNOTATION.mergeMetrics]: flagFault,
  [ANNOTATION.proxyCpu]: quantityFault,
  [ANNOTATION.proxyMemory]: quantityFault,
  [ANNOTATION.proxyCpuLimit]: quantityFault,
  [ANNOTATION.proxyMemoryLimit]: quantityFault,
  [ANNOTATION.userVolume]: namedJsonFault,
  [ANNOTATION.userVolumeMount]: namedJsonFault,
  [ANNOTATION.overrides]: (value) => (isFields(parseJson(value)) ? undefined : "is not a JSON object"),
};

/** What is wrong with the annotations of a pod: a sentence each. */
export function annotationFaults(annotations: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(annotations).flatMap(([name, value]) => {
    const fault = CHECKS[name]?.(value);
    return fault === undefined ? [] : [`annotation ${name}: ${fault}`];
  });
}

const quoted = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

function wholeNumberFault(value: string): Fault {
  return /^\d{1,10}$/.test(value) && Number(value) <= 0xffff_ffff ? undefined : `${quoted(value)} is not a whole number`;
}

/** Spaces, zones and zeros before the length are refused, as the original does: who sets up the rules may read them otherwise than we do. */
const RANGE = /^[0-9a-f:.]+\/(0|[1-9]\d*)$/i;

function rangesFault(name: string, value: string): Fault {
  const bad = value === "" ? undefined : value.split(",").find((range) => !RANGE.test(range) || parseCidr(range) === undefined);
  return bad === undefined ? undefined : `${name}: ${quoted(bad)} is not a range of addresses such as 10.0.0.0/8`;
}

function portsFault(value: string): Fault {
  const faults = value.trim() === "" ? [] : value.split(",").map(portFault);
  return faults.find((fault) => fault !== undefined);
}

function portFault(value: string): Fault {
  return /^\d+$/.test(value.trim()) && Number(value) <= 65_535 ? undefined : `${quoted(value)} is not a port`;
}

function interfacesFault(value: string): Fault {
  const bad = value === "" ? undefined : value.split(",").find((name) => !/^[A-Za-z0-9][A-Za-z0-9._@-]{0,14}$/.test(name.trim()));
  return bad === undefined ? undefined : `${quoted(bad)} is not the name of an interface`;
}

function flagFault(value: string): Fault {
  return parseFlag(value) === undefined ? `${quoted(value)} is neither true nor false` : undefined;
}

function quantityFault(value: string): Fault {
  return value !== value.trim() || canonicalQuantity(value) === undefined
    ? `${quoted(value)} is not a quantity such as 100m or 128Mi`
    : undefined;
}

function namedJsonFault(value: string): Fault {
  return parseNamedJson(value) === undefined ? "is neither a JSON object of objects by name nor a list of objects with names" : undefined;
}

/** A flag as Go reads it. */
export function parseFlag(text: string): boolean | undefined {
  if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
  return ["0", "f", "F", "false", "FALSE", "False"].includes(text) ? false : undefined;
}

/**
 * Objects with their names, from JSON that has them by name or as a list; both are in use. A name within an object counts more than the one it
 * stands under. Undefined where the text is anything else.
 */
export function parseNamedJson(text: string): readonly Named[] | undefined {
  const value = parseJson(text);
  if (value === null) return [];
  if (!Array.isArray(value) && !isFields(value)) return undefined;
  const entries = Object.entries(value).sort(([a], [b]) => (Array.isArray(value) || a === b ? 0 : a < b ? -1 : 1));
  const named = entries.map(([key, item]) => (isFields(item) && Object.keys(item).length > 0 ? { name: key, ...item } : undefined));
  return named.every((item): item is Named => typeof item?.name === "string") ? named : undefined;
}

/** What a text says as JSON; undefined where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
