import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isIp } from "../base/address.ts";
import { isOn } from "../base/go-bool.ts";
import { contentHash } from "../base/hash.ts";
import type { Labels } from "../base/labels.ts";
import { sortedJson } from "../base/sorted-json.ts";
import type { Query } from "../engine/index.ts";
import type { Node } from "../gen/envoy/config/core/v3/base_pb.js";
import { type Locality, NO_LOCALITY, parseLocality } from "../model/locality.ts";
import type { CertificateFiles, Interception, ProxyMetadata, ProxyType, ProxyView } from "../model/proxy.ts";
import type { Workload } from "../registry/registry.ts";
import type { DiscoveryVariant } from "../wire/discovery-stream.ts";
import type { GenerateContext } from "./context.ts";
import { defineSidecarChoice } from "./lookups/sidecar-choice.ts";
import { extensionListOf, hasExtension } from "./patches/extension-list.ts";
import { proxyConfigText } from "./proxy-config.ts";
import { workloadClaim } from "./workload-claim.ts";

/** What a proxy says of itself, read once per stream. The registry's word goes before it, see `defineProxyView`. */
export interface NodeFacts {
  /** Node id and a hash of all that was said: equal facts are the same proxy saying the same. */
  readonly key: string;
  readonly view: Omit<ProxyView, "sidecar" | "remoteCluster" | "pod" | "claim">;
}

export type NodeRefusal = { readonly refused: string };

/** What counts standard metrics: an Envoy without it would refuse all its listeners. */
const COUNTING_LOGGER = { type: "envoy.extensions.access_loggers.stats.v3.Config", kind: "envoy.access_loggers" };

const TYPES: readonly string[] = ["sidecar", "router", "waypoint"] satisfies ProxyType[];

/**
 * Reads Istio's node: id `type~IP~name.namespace~domain` and its metadata. A node that is not of this form is refused with a reason. What only
 * delta streams can carry is not believed of others.
 */
export function readNode(node: Node, variant: DiscoveryVariant = "delta"): NodeFacts | NodeRefusal {
  const parts = node.id.split("~");
  const [type = "", address = "", fullName = "", dnsDomain = ""] = parts;
  if (parts.length !== 4 || !TYPES.includes(type)) {
    return {
      refused: `node id ${JSON.stringify(node.id.slice(0, 200))} is not of the form sidecar|router|waypoint~IP~name.namespace~domain`,
    };
  }
  // Envoy writes maps in another order on each stream.
  const metadata = sortedJson(node.metadata ?? {});
  const dot = fullName.lastIndexOf(".");
  const namespace = text(metadata.NAMESPACE) || (dot > 0 ? fullName.slice(dot + 1) : "default");
  const labels = stringMap(metadata.LABELS);
  const extensions = extensionListOf(node);
  const view: NodeFacts["view"] = {
    id: node.id,
    type: type as ProxyType,
    name: text(metadata.NAME) || (dot > 0 ? fullName.slice(0, dot) : fullName),
    namespace,
    dnsDomain: dnsDomain || `${namespace}.svc.cluster.local`,
    addresses: addressesOf(address, text(metadata.INSTANCE_IPS)),
    labels,
    serviceAccount: text(metadata.SERVICE_ACCOUNT),
    locality: saidLocality(node),
    network: text(metadata.NETWORK),
    clusterId: text(metadata.CLUSTER_ID),
    nodeName: text(metadata.NODE_NAME),
    interception: interceptionOf(text(metadata.INTERCEPTION_MODE)),
    dnsCapture: flag(metadata.DNS_CAPTURE),
    istioVersion: text(metadata.ISTIO_VERSION),
    hasIdentity: text(metadata.WORKLOAD_IDENTITY) !== "none" && (text(metadata["file-credential"]) === "true" ? "aside" : true),
    proven: false,
    metadata: metadataOf(metadata, {
      nodeCluster: node.cluster,
      variant,
      counts: flag(metadata.STANDARD_METRICS) && hasExtension(extensions, COUNTING_LOGGER),
    }),
    ...(text(metadata.GENERATOR) === "grpc" && { generator: "grpc" }),
    ...(extensions !== undefined && { extensions }),
  };
  return { key: `${node.id}#${contentHash(JSON.stringify(view))}`, view };
}

/**
 * The view generators work with: labels, account, locality and network come from the registry's object at the proxy's address in its
 * namespace where there is one, as Istio does, because what a proxy says of itself is a claim and the registry is what others see. A pod on its node's
 * network, or without a known address yet, is the one of its name. Of one that no object tells of yet, its own word says which ports it serves.
 */
export function defineProxyView(ctx: Pick<GenerateContext, "engine" | "inputs" | "registry" | "settings">): Query<NodeFacts, ProxyView> {
  const sidecarFor = defineSidecarChoice(ctx);
  return ctx.engine.query<NodeFacts, ProxyView>({
    name: "proxyView",
    id: (facts) => facts.key,
    compute: ({ view }) => {
      const remoteCluster = ctx.registry.isRemote(view.clusterId) ? view.clusterId : "";
      const knownAs = (pod: string): Workload | undefined =>
        view.addresses
          .map((address) => ctx.registry.workloadAt(address, view.namespace, { cluster: remoteCluster, pod }))
          .find((workload) => workload !== undefined);
      const atAddress = knownAs("");
      const known = atAddress ?? knownAs(view.name);
      const pod = atAddress === undefined && known !== undefined ? view.name : "";
      const labels = known === undefined ? view.labels : withStatic(known.labels, view.metadata.staticLabels);
      const merged = {
        ...view,
        remoteCluster,
        pod,
        claim:
          known === undefined && (remoteCluster !== "" || ["", ctx.settings.clusterId].includes(view.clusterId)) ? workloadClaim(view) : "",
        labels,
        serviceAccount: view.serviceAccount || known?.serviceAccount || "",
        locality: labelledLocality(labels) ?? view.locality,
        network: view.network || known?.network || "",
        nodeName: view.nodeName || known?.nodeName || "",
      };
      return { ...merged, sidecar: view.type === "sidecar" ? sidecarFor({ namespace: view.namespace, labels }) : undefined };
    },
  });
}

/** The same record where there is nothing to add, so that proxies of one workload go on sharing it. */
const withStatic = (labels: Labels, added: Labels): Labels => (Object.keys(added).length === 0 ? labels : { ...added, ...labels });

/** Its metadata says all of them, as in Istio; where it says none, or something that is no address, the one in its id is what it has. */
function addressesOf(primary: string, instanceIps: string): readonly string[] {
  const all = instanceIps.split(",").map((address) => address.trim());
  return all.every(isIp) ? [...new Set(all)] : [primary].filter((address) => address !== "");
}

function saidLocality(node: Node): Locality {
  const { region = "", zone = "", subZone: subzone = "" } = node.locality ?? {};
  return region === "" ? NO_LOCALITY : { region, zone, subzone };
}

/** Where labels put a workload: those of its place, which the registry adds too, or Istio's own label, which says all in one. */
function labelledLocality(labels: Readonly<Record<string, string>>): Locality | undefined {
  const region = labels["topology.kubernetes.io/region"];
  const zone = labels["topology.kubernetes.io/zone"];
  const subzone = labels["topology.istio.io/subzone"];
  if (region !== undefined || zone !== undefined || subzone !== undefined)
    return { region: region ?? "", zone: zone ?? "", subzone: subzone ?? "" };
  const label = labels["istio-locality"];
  if (label === undefined || label === "") return undefined;
  return parseLocality(label.includes("/") ? label : label.replaceAll(".", "/"));
}

function metadataOf(
  metadata: JsonObject,
  { nodeCluster, variant, counts }: { readonly nodeCluster: string; readonly variant: DiscoveryVariant; readonly counts: boolean },
): ProxyMetadata {
  const optional = (value: JsonValue | undefined): string | undefined => text(value) || undefined;
  return {
    httpProxyPort: Number(text(metadata.HTTP_PROXY_PORT)) || 0,
    clientFiles: certificateFiles(metadata, "TLS_CLIENT"),
    serverFiles: certificateFiles(metadata, "TLS_SERVER"),
    credentialSocket: text(metadata.credential) === "true",
    staticLabels: stringMap(metadata.STATIC_LABELS),
    bootstrapPorts: bootstrapPorts(metadata),
    idleTimeout: optional(metadata.IDLE_TIMEOUT),
    unprivilegedPod: flag(metadata.UNPRIVILEGED_POD),
    // A number, as in Istio: `true` is none.
    http10: text(metadata.HTTP10) === "1",
    exactBalance: { inbound: flag(metadata.INBOUND_LISTENER_EXACT_BALANCE), outbound: flag(metadata.OUTBOUND_LISTENER_EXACT_BALANCE) },
    systemRoots: optional(metadata.SYSTEM_ROOTS),
    requestedNetworkView: text(metadata.REQUESTED_NETWORK_VIEW)
      .split(",")
      .filter((network) => network !== ""),
    vhds: variant === "delta" && flag(metadata.VHDS),
    standardMetrics: counts,
    nodeCluster,
    proxyConfig: proxyConfigText(metadata.PROXY_CONFIG, text(metadata.PROXY_CONFIG_OVER) === "mesh"),
    raw: JSON.stringify(metadata),
  };
}

/** A certificate without its key cannot be shown to anybody, so it does not count. */
function certificateFiles(metadata: JsonObject, prefix: "TLS_CLIENT" | "TLS_SERVER"): CertificateFiles | undefined {
  const chain = text(metadata[`${prefix}_CERT_CHAIN`]);
  const key = text(metadata[`${prefix}_KEY`]);
  return chain === "" || key === "" ? undefined : { chain, key, roots: text(metadata[`${prefix}_ROOT_CERT`]) };
}

/** Readiness and statistics stand in every proxy's bootstrap, their secured forms where the proxy says so. */
function bootstrapPorts(metadata: JsonObject): readonly number[] {
  const port = (name: string): number => Number(text(metadata[name])) || 0;
  const fixed = [port("ENVOY_STATUS_PORT") || 15021, port("ENVOY_PROMETHEUS_PORT") || 15090];
  return [...fixed, port("ENVOY_SECURE_METRICS_PORT"), port("ENVOY_SECURE_MERGED_METRICS_PORT")].filter((one) => one !== 0);
}

const interceptionOf = (mode: string): Interception => (mode === "TPROXY" || mode === "NONE" ? mode : "REDIRECT");

const text = (value: JsonValue | undefined): string =>
  typeof value === "string" ? value : typeof value === "number" || typeof value === "boolean" ? String(value) : "";

const flag = (value: JsonValue | undefined): boolean => isOn(text(value));

function stringMap(value: JsonValue | undefined): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).flatMap(([key, entry]) => (typeof entry === "string" ? [[key, entry]] : [])));
}
