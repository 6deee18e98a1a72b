import {
  DERIVED_LABELS,
  DESTINATION_LABELS,
  OVERFLOW,
  RAW,
  SERVICE_LABELS,
  SOURCE_LABELS,
  UNKNOWN,
  WORKLOAD_LABELS,
} from "../../model/standard-metrics.ts";
import { labelText, readLabels } from "./label-text.ts";
import type { Identity } from "./peers.ts";
import { endpointFacts, NOBODY, type WorkloadFacts } from "./workload-facts.ts";

/** Who the workloads are that Envoy's series speak of in short. */
export interface Workloads {
  /** The workload beside this agent. */
  self(): WorkloadFacts;
  /** Its identity, by which others know it in mutual TLS. */
  readonly principal: string;
  /** Who runs at an address under an identity; undefined where that is not known. */
  peer(identity: Identity, address: string): WorkloadFacts | undefined;
}

const RAW_LABELS: ReadonlySet<string> = new Set(Object.values(RAW));
const SPIFFE = /^spiffe:\/\/[^/]+\/ns\/([^/]+)\/sa\/([^/]+)$/;
/** Clusters that stand for no service: dashboards show them by name. */
const NO_SERVICE = /^(PassthroughCluster|BlackHoleCluster|InboundPassthroughCluster)/;
/** Where a server sends what no service declares. */
const UNDECLARED = "InboundPassthroughCluster";
const OUTBOUND = /^outbound\|\d+\|[^|]*\|(.+)$/;
const IN_CLUSTER = /^([^.]+)\.([^.]+)\.svc\./;

/** What a SPIFFE id of the mesh says; undefined where it is none. */
export function identityOf(principal: string): Identity | undefined {
  const [, namespace, account] = SPIFFE.exec(principal) ?? [];
  return namespace === undefined || account === undefined ? undefined : { namespace, account };
}

/** The labels dashboards expect, from those that Envoy counted a metric by; both as texts. */
export function standardLabels(metric: string, text: string, workloads: Workloads): string {
  const raw = readLabels(text);
  // Counted by something else under Istio's prefix (an EnvoyFilter, say).
  if (!raw.has("reporter")) return text;
  const derived = derivedLabels(metric, raw, workloads);
  const without = new Set((raw.get(RAW.without) ?? "").split(","));
  const labels = [
    ...[...raw].filter(([name]) => !RAW_LABELS.has(name) && !PRINCIPALS.has(name)),
    ...principals(raw, workloads.principal),
    // A Telemetry may say itself what a label is to be.
    ...DERIVED_LABELS.filter((name) => !raw.has(name)).map((name) => [name, derived[name] ?? UNKNOWN] as const),
  ];
  return labelText(labels.filter(([name]) => !without.has(name)));
}

const PRINCIPALS: ReadonlySet<string> = new Set(["source_principal", "destination_principal"]);

/** Each side sees the other's certificate; where there was one, it has shown its own. */
function principals(raw: ReadonlyMap<string, string>, own: string): readonly (readonly [name: string, value: string])[] {
  const server = raw.get("reporter") === "destination";
  const other = raw.get(server ? "source_principal" : "destination_principal") || UNKNOWN;
  const self = other === UNKNOWN ? UNKNOWN : own;
  return [
    ["source_principal", server ? other : self],
    ["destination_principal", server ? self : other],
  ];
}

/** The same labels without telling who the peer is. */
export function overflowLabels(text: string): string {
  const labels = readLabels(text);
  const peer =
    labels.get("reporter") === "destination"
      ? [...SOURCE_LABELS, "source_principal"]
      : [...DESTINATION_LABELS, ...SERVICE_LABELS, "destination_principal"];
  for (const name of peer) if (labels.has(name)) labels.set(name, OVERFLOW);
  return labelText(labels);
}

function derivedLabels(metric: string, raw: ReadonlyMap<string, string>, workloads: Workloads): Readonly<Record<string, string>> {
  const server = raw.get("reporter") === "destination";
  const principal = raw.get("source_principal") ?? "";
  const source = server ? peerFacts(raw.get(RAW.peer) ?? "", principal, workloads) : workloads.self();
  const destination = server ? workloads.self() : endpointFacts(raw.get(RAW.peer) ?? "");
  const service = serviceOf(raw.get(RAW.services) ?? "", server ? UNDECLARED : (raw.get(RAW.cluster) ?? ""));
  return {
    ...prefixed("source_", source),
    ...prefixed("destination_", destination),
    destination_service: service.host,
    destination_service_name: service.name,
    destination_service_namespace: service.namespace === UNKNOWN ? destination.workload_namespace : service.namespace,
    request_protocol: metric.startsWith("istio_tcp_") ? "tcp" : raw.get("grpc_response_status") ? "grpc" : "http",
    connection_security_policy: !server ? UNKNOWN : principal === "" ? "none" : "mutual_tls",
  };
}

const prefixed = (prefix: string, facts: WorkloadFacts): Readonly<Record<string, string>> =>
  Object.fromEntries(WORKLOAD_LABELS.map((label) => [`${prefix}${label}`, facts[label]]));

/** The namespace is in the certificate, whoever it is. */
function peerFacts(address: string, principal: string, { peer }: Workloads): WorkloadFacts {
  const identity = identityOf(principal);
  if (identity === undefined) return NOBODY;
  return (address === "" ? undefined : peer(identity, address)) ?? { ...NOBODY, workload_namespace: identity.namespace };
}

interface ServiceLabels {
  readonly host: string;
  readonly name: string;
  readonly namespace: string;
}

/** The first service of the cluster's metadata; else what its name says. */
function serviceOf(metadata: string, cluster: string): ServiceLabels {
  const first = firstService(metadata);
  if (first !== undefined) return first;
  const unnamed = { host: UNKNOWN, name: UNKNOWN, namespace: UNKNOWN };
  if (NO_SERVICE.test(cluster)) return { ...unnamed, name: cluster };
  const host = OUTBOUND.exec(cluster)?.[1];
  if (host === undefined) return unnamed;
  const [, name = host, namespace = UNKNOWN] = IN_CLUSTER.exec(host) ?? [];
  return { host, name, namespace };
}

function firstService(metadata: string): ServiceLabels | undefined {
  if (metadata === "") return undefined;
  try {
    const [first] = JSON.parse(metadata) as readonly Partial<ServiceLabels>[];
    return first?.host === undefined
      ? undefined
      : { host: first.host, name: first.name || first.host, namespace: first.namespace || UNKNOWN };
  } catch {
    return undefined;
  }
}
