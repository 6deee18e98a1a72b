import { create, type JsonObject } from "@bufbuild/protobuf";
import { isIp } from "../../base/address.ts";
import { type Labels, labelPairs, matchesLabels } from "../../base/labels.ts";
import type { ConfigObject } from "../../config/object.ts";
import { NodeSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import type { Gateway } from "../../gen/istio/networking/v1alpha3/gateway_pb.js";
import { ServiceEntry_Location as Location, type ServiceEntry } from "../../gen/istio/networking/v1alpha3/service_entry_pb.js";
import { type NodeFacts, readNode } from "../../generate/proxy-view.ts";
import type { World } from "../../generate/world.ts";
import { formatLocality } from "../../model/locality.ts";

/** A proxy that there is, or that the configuration says there must be. */
export interface MeshProxy {
  /** Tells it apart from others, before and after a change. */
  readonly id: string;
  readonly type: "sidecar" | "router";
  readonly name: string;
  readonly namespace: string;
  /** No workload is known that it belongs to: it stands for any that may come. */
  readonly assumed: boolean;
  /** Proxies with the same text here are configured alike, apart from their address. */
  readonly alike: string;
  readonly facts: NodeFacts;
  /** Of one that is connected: the names it watches, by type URL. */
  readonly watches?: Readonly<Record<string, readonly string[]>>;
}

/** An address that no workload has, for proxies that are only assumed. */
const NO_ADDRESS = "192.0.2.1";

/**
 * The proxies of a mesh, as far as its configuration tells: a gateway for each workload that a Gateway selects, a sidecar for each other
 * one; where a Gateway selects none, one that it would select; where a namespace has none, one without labels.
 */
export function meshProxies(world: World): readonly MeshProxy[] {
  const gateways = world.inputs.objects.list("kind", "Gateway") as readonly ConfigObject<Gateway>[];
  const workloads = workloadsOf(world);
  const selectors = gateways.map(({ spec }) => spec.selector).filter((selector) => Object.keys(selector).length > 0);
  const isRouter = ({ labels }: MeshWorkload): boolean => selectors.some((selector) => matchesLabels(selector, labels));
  const known = workloads.map((workload) => proxyOf(world, workload, isRouter(workload) ? "router" : "sidecar"));
  return [...known, ...assumedRouters(world, gateways, workloads), ...assumedSidecars(world, workloads)];
}

/** A proxy that is named by its node, as it says it to the control plane. */
export function namedProxy(facts: NodeFacts): MeshProxy {
  const { id, type, name, namespace } = facts.view;
  return { id, type: type === "sidecar" ? "sidecar" : "router", name, namespace, assumed: false, alike: facts.key, facts };
}

interface MeshWorkload {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly labels: Labels;
  readonly serviceAccount: string;
  readonly locality: string;
  readonly network: string;
  readonly nodeName: string;
  readonly addresses: readonly string[];
  /** What it serves: `host:port>target`. */
  readonly serves: readonly string[];
}

function workloadsOf(world: World): readonly MeshWorkload[] {
  const { objects } = world.inputs;
  const found = new Map<string, MeshWorkload>();
  for (const at of objects.indexKeys("address")) {
    const workload = workloadAt(world, at);
    if (workload === undefined) continue;
    const before = found.get(workload.id);
    const addresses = [...(before?.addresses ?? []), ...workload.addresses];
    found.set(workload.id, before === undefined ? workload : { ...before, addresses });
  }
  return [...found.values()];
}

/** The workload that has a proxy at `namespace/address`, if any. A host outside the mesh has none, nor has a pod that declines one. */
function workloadAt({ inputs, context }: World, at: string): MeshWorkload | undefined {
  const slash = at.indexOf("/");
  const [namespace, address] = [at.slice(0, slash), at.slice(slash + 1)];
  const objects = inputs.objects.list("address", at);
  const own = objects.find(({ kind }) => kind === "Pod") ?? objects.find(({ kind }) => kind === "WorkloadEntry");
  if (!isIp(address) || (own === undefined ? objects.every(isOutside) : declines(own))) return undefined;
  const instances = context.registry.instancesAt(address, namespace);
  const workload = context.registry.workloadAt(address, namespace);
  const [endpoint] = instances.map((instance) => instance.endpoint);
  return {
    id: own === undefined ? at : `${own.kind}/${own.namespace}/${own.name}`,
    name: own?.name || workload?.name || endpoint?.workload || address,
    namespace,
    labels: workload?.labels ?? endpoint?.labels ?? {},
    serviceAccount: workload?.serviceAccount ?? endpoint?.serviceAccount ?? "",
    locality: workload === undefined ? "" : formatLocality(workload.locality),
    network: workload?.network ?? "",
    nodeName: workload?.nodeName ?? "",
    addresses: [address],
    serves: instances.map(({ service, servicePort, endpoint: { port } }) => `${service.host}:${servicePort.number}>${port}`),
  };
}

const isOutside = ({ kind, spec }: ConfigObject): boolean =>
  kind === "ServiceEntry" && (spec as ServiceEntry).location !== Location.MESH_INTERNAL;

const INJECT = "sidecar.istio.io/inject";
const declines = ({ labels, annotations }: ConfigObject): boolean => (labels[INJECT] ?? annotations[INJECT]) === "false";

function proxyOf(world: World, workload: MeshWorkload, type: MeshProxy["type"]): MeshProxy {
  const { id, name, namespace, labels, serviceAccount, locality, network, serves, addresses } = workload;
  const families = addresses.map((address) => (address.includes(":") ? 6 : 4));
  const alike = JSON.stringify([type, namespace, labelPairs(labels), serviceAccount, locality, network, serves, families]);
  return { id, type, name, namespace, assumed: addresses[0] === NO_ADDRESS, alike, facts: factsOf(world, workload, type) };
}

function factsOf({ context }: World, workload: MeshWorkload, type: MeshProxy["type"]): NodeFacts {
  const { name, namespace, labels, serviceAccount, network, nodeName, addresses } = workload;
  const metadata: JsonObject = {
    NAME: name,
    NAMESPACE: namespace,
    LABELS: labels,
    SERVICE_ACCOUNT: serviceAccount,
    NETWORK: network,
    NODE_NAME: nodeName,
    INSTANCE_IPS: addresses.join(","),
    CLUSTER_ID: context.settings.clusterId,
  };
  const id = `${type}~${addresses[0] ?? NO_ADDRESS}~${name}.${namespace}~${namespace}.svc.${context.settings.clusterDomain}`;
  const facts = readNode(create(NodeSchema, { id, metadata }));
  if ("refused" in facts) throw new Error(facts.refused);
  return facts;
}

const assumed = (name: string, namespace: string, labels: Labels): MeshWorkload => ({
  id: `any ${name} of ${namespace}`,
  name,
  namespace,
  labels,
  serviceAccount: "",
  locality: "",
  network: "",
  nodeName: "",
  addresses: [NO_ADDRESS],
  serves: [],
});

function assumedRouters(
  world: World,
  gateways: readonly ConfigObject<Gateway>[],
  workloads: readonly MeshWorkload[],
): readonly MeshProxy[] {
  const idle = gateways.filter(({ spec }) => !workloads.some(({ labels }) => matchesLabels(spec.selector, labels)));
  const bySelector = Map.groupBy(idle, ({ spec }) => labelPairs(spec.selector).join(","));
  return [...bySelector].flatMap(([pairs, [first]]) => {
    if (first === undefined) return [];
    return [proxyOf(world, assumed(pairs === "" ? "gateway" : `gateway with ${pairs}`, first.namespace, first.spec.selector), "router")];
  });
}

/** Namespaces that have configuration for workloads, but none that is known. */
function assumedSidecars(world: World, workloads: readonly MeshWorkload[]): readonly MeshProxy[] {
  const { inputs } = world;
  const inhabited = new Set(workloads.map(({ namespace }) => namespace));
  const root = inputs.mesh.get("mesh")?.rootNamespace;
  const mentioned = inputs.objects.indexKeys("kindNamespace").flatMap((key) => {
    const [kind = "", namespace = ""] = key.split("/");
    return CONCERNING_WORKLOADS.has(kind) && namespace !== root ? [namespace] : [];
  });
  const empty = [...new Set(mentioned)].filter((namespace) => !inhabited.has(namespace)).sort();
  const chosen = empty.length === 0 && workloads.length === 0 ? ["default"] : empty;
  return chosen.map((namespace) => proxyOf(world, assumed("workload", namespace, {}), "sidecar"));
}

const CONCERNING_WORKLOADS: ReadonlySet<string> = new Set([
  "Service",
  "ServiceEntry",
  "VirtualService",
  "DestinationRule",
  "Sidecar",
  "EnvoyFilter",
  "PeerAuthentication",
  "RequestAuthentication",
  "AuthorizationPolicy",
  "Telemetry",
  "WasmPlugin",
  "ProxyConfig",
  "WorkloadGroup",
]);
