import { isIP } from "node:net";
import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { dump } from "js-yaml";
import { hostPort } from "../../base/address.ts";
import type { ConfigObject } from "../../config/object.ts";
import { ReadinessProbeSchema, type WorkloadGroup } from "../../gen/istio/networking/v1alpha3/workload_group_pb.js";
import type { GroupProxyConfig } from "./group-proxy-config.ts";

/** All that decides a join bundle. */
export interface JoinBundleInput {
  readonly group: ConfigObject<WorkloadGroup>;
  readonly serviceAccount: string;
  readonly token: string;
  readonly roots: string;
  readonly trustDomain: string;
  readonly clusterId: string;
  readonly meshId: string;
  /** Where the machine reaches istiod. */
  readonly istiod: { readonly host: string; readonly port: number };
  /** Namespace of the control plane. */
  readonly istioNamespace: string;
  /** The machine registers itself when it connects. */
  readonly autoregister: boolean;
  readonly captureDns: boolean;
  /** Address under which others reach the machine, where it is not its own first one; an external one is none of the machine's own. */
  readonly address: { readonly ip: string; readonly external: boolean } | undefined;
  readonly proxy: GroupProxyConfig;
}

/** Names of the files, to see what is there already. */
export const BUNDLE_NAMES = ["cluster.env", "mesh.yaml", "root-cert.pem", "istio-token", "hosts"] as const;

/** A file of the bundle: its name as Istio has it, and its place below the base directory of the machine. */
export interface BundleFile {
  readonly name: (typeof BUNDLE_NAMES)[number];
  readonly place: string;
  readonly text: string;
  readonly mode: number;
}

/** Ports of the machine that stay out of the mesh: ssh, so that a fault locks nobody out, and those of Envoy; the agent's comes with them. */
const EXCLUDED_PORTS: readonly number[] = [22, 15_090, 15_021];

/** The files with which a machine joins, under the names of Istio's `workload entry configure`. */
export function joinBundle(input: JoinBundleInput): readonly BundleFile[] {
  const metadata = proxyMetadata(input);
  const environment = envText({ ...input.proxy.variables, ...metadata, ...machineEnv(input) });
  const mesh = dump({ defaultConfig: proxyConfig(input, metadata) }, { lineWidth: -1, sortKeys: true });
  return [
    { name: "cluster.env", place: "var/lib/istio/envoy/cluster.env", text: environment, mode: 0o644 },
    { name: "mesh.yaml", place: "etc/istio/config/mesh", text: mesh, mode: 0o644 },
    { name: "root-cert.pem", place: "etc/certs/root-cert.pem", text: input.roots, mode: 0o644 },
    { name: "istio-token", place: "var/run/secrets/tokens/istio-token", text: input.token, mode: 0o600 },
    { name: "hosts", place: "var/lib/istio/envoy/hosts", text: hostsText(input), mode: 0o644 },
  ];
}

const STATUS_PORT = 15_020;

const serverName = ({ istioNamespace }: JoinBundleInput): string => `istiod.${istioNamespace}.svc`;

function hostsText(input: JoinBundleInput): string {
  return isIP(input.istiod.host) === 0 ? "" : `${input.istiod.host} ${serverName(input)}\n`;
}

/** What the machine's proxy says of itself. */
function proxyMetadata({ group, serviceAccount, trustDomain, clusterId, meshId, autoregister, captureDns }: JoinBundleInput) {
  const { template, metadata } = group.spec;
  const labels: Record<string, string> = { ...template?.labels, ...metadata?.labels };
  const name = labels["service.istio.io/canonical-name"] ?? labels["app.kubernetes.io/name"] ?? labels.app ?? group.name;
  const revision = labels["service.istio.io/canonical-revision"] ?? labels["app.kubernetes.io/version"] ?? labels.version ?? "latest";
  const all = { ...labels, "service.istio.io/canonical-name": name, "service.istio.io/canonical-revision": revision };
  return {
    CANONICAL_SERVICE: name,
    CANONICAL_REVISION: revision,
    ISTIO_META_CLUSTER_ID: clusterId,
    ISTIO_META_MESH_ID: meshId,
    ISTIO_META_WORKLOAD_NAME: group.name,
    ISTIO_METAJSON_LABELS: JSON.stringify(all),
    POD_NAMESPACE: group.namespace,
    SERVICE_ACCOUNT: serviceAccount,
    TRUST_DOMAIN: trustDomain,
    ...(template !== undefined && template.network !== "" && { ISTIO_META_NETWORK: template.network }),
    ...(captureDns && { ISTIO_META_DNS_CAPTURE: "true" }),
    ...(autoregister && { ISTIO_META_AUTO_REGISTER_GROUP: group.name }),
  };
}

/** What agent and interception on the machine are told. */
function machineEnv(input: JoinBundleInput): Readonly<Record<string, string>> {
  const { group, istiod, clusterId, address, proxy } = input;
  const ports = Object.values(group.spec.template?.ports ?? {});
  const own = { ...proxy.own, ...probeOf(input) };
  return {
    CLUSTER_ID: clusterId,
    ISTIO_ADDRESS: hostPort(istiod.host, istiod.port),
    ISTIOD_SAN: serverName(input),
    ISTIO_INBOUND_PORTS: ports.length === 0 ? "*" : ports.join(","),
    ISTIO_LOCAL_EXCLUDE_PORTS: [...new Set([...EXCLUDED_PORTS, proxy.statusPort || STATUS_PORT])].join(","),
    ISTIO_NAMESPACE: group.namespace,
    ISTIO_SERVICE: `${group.name}.${group.namespace}`,
    ISTIO_SERVICE_CIDR: "*",
    // The certificate outlives a restart of the machine: the token in the bundle is good for the first one only.
    OUTPUT_CERTS: "etc/certs",
    ...(address !== undefined && { ISTIO_SVC_IP: address.ip, INSTANCE_IP: address.ip }),
    // Nobody on the machine can be called at an address that is not the machine's.
    ...(address?.external === true && { REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION: "true" }),
    ...(Object.keys(own).length > 0 && { PROXY_CONFIG: JSON.stringify(own) }),
  };
}

function proxyConfig(input: JoinBundleInput, proxyMetadata: Readonly<Record<string, string>>): JsonObject {
  const { whole, own, variables } = input.proxy;
  return {
    ...whole,
    // Under the name that its certificate is for, to which the bundle's `hosts` gives an address.
    discoveryAddress: own.discoveryAddress ?? `${serverName(input)}:${input.istiod.port}`,
    meshId: input.meshId,
    proxyMetadata: { ...variables, ...proxyMetadata },
    ...probeOf(input),
  };
}

function probeOf({ group }: JoinBundleInput): JsonObject {
  const { probe } = group.spec;
  return probe === undefined ? {} : { readinessProbe: toJson(ReadinessProbeSchema, probe) };
}

/** Lines that a shell and systemd read alike. */
function envText(values: Readonly<Record<string, string>>): string {
  const quoted = (value: string): string => (value.includes("'") ? `"${value.replaceAll(/(["\\$`])/g, "\\$1")}"` : `'${value}'`);
  return Object.keys(values)
    .sort()
    .map((name) => `${name}=${quoted(values[name] ?? "")}\n`)
    .join("");
}
