import { canonicalAddress } from "../base/address.ts";
import type { Labels } from "../base/labels.ts";
import { NO_LABELS } from "../base/labels.ts";
import type { Pod } from "../config/kinds/pod/pod.ts";
import { type ConfigObject, clusterOfKey, inCluster } from "../config/object.ts";
import { type Locality, NO_LOCALITY } from "../model/locality.ts";
import { endpointsAddresses, type ListedAddress, sliceAddresses } from "./endpoint-slice.ts";
import { type Member, memberMaker, type RawMember } from "./member.ts";
import { networkInCluster } from "./networks.ts";
import { localityOfNode } from "./placement.ts";
import { podMember } from "./pod.ts";
import type { RegistryContext } from "./registry-context.ts";
import type { Among } from "./selection.ts";
import { kindOfKey, storedEndpointSlice, storedEndpoints, storedPod, storedService } from "./stored-object.ts";

/** How members of Services find other workloads. */
export interface WorkloadLookup {
  /** A WorkloadEntry or Pod by object key. */
  readonly workload: (key: string) => Member | undefined;
  /** Workloads of a namespace by label. */
  readonly selected: (
    kind: "Pod" | "WorkloadEntry",
    by: { readonly namespace: string; readonly selector: Labels; readonly among: Among },
  ) => readonly Member[];
}

/** Who stands behind Kubernetes Services. */
export interface KubernetesMembers {
  /** A Pod by object key; undefined while it has no address, and once it has ended. */
  readonly pod: (key: string) => RawMember | undefined;
  /** The same at an address that it says itself, while none is known or where it is its node's. */
  readonly podThatMayBeAt: (key: string, address: string) => RawMember | undefined;
  /** A Pod behind something that lists no addresses itself: with ISTIO_DUAL_STACK at all of its own, as in Istio. */
  readonly atAllAddresses: (pod: Member) => readonly Member[];
  /** All members of a Service by object key. */
  readonly members: (key: string, lookup: WorkloadLookup) => readonly Member[];
}

/** Defines what the members of Services are derived with. */
export function defineKubernetesMembers(context: RegistryContext): KubernetesMembers {
  const { engine, inputs, mesh } = context;
  /** By name of the node, with its cluster where that is another one. */
  const nodeLocality = engine.query<string, Locality>({
    name: "registry.nodeLocality",
    compute: (name) => localityOfNode(inputs.objects.get(`Node//${name}`)?.labels ?? NO_LABELS),
  });
  const podsKnown = engine.query<"", boolean>({
    name: "registry.podsKnown",
    compute: () => inputs.objects.keys("kind", "Pod").length > 0,
  });
  const podAddresses = engine.query<string, readonly string[]>({
    name: "registry.podAddresses",
    compute: (key) => (storedPod(inputs.objects, key)?.spec.status.podIPs ?? []).map(({ ip }) => canonicalAddress(ip)),
  });
  const memberOf = (object: ConfigObject<Pod>): RawMember | undefined => {
    const { cluster = "" } = object;
    const localityOf = (name: string): Locality => nodeLocality(`${name}${inCluster(cluster)}`);
    return podMember(object, {
      networks: mesh.networks(cluster),
      clusterNetwork: mesh.clusterNetwork(cluster),
      localityOfNode: localityOf,
    });
  };
  return {
    pod: (key) => {
      const object = storedPod(inputs.objects, key);
      return object && memberOf(object);
    },
    podThatMayBeAt: (key, address) => {
      const object = storedPod(inputs.objects, key);
      return object && mayBeAt(object.spec, address) ? memberOf(withAddress(object, address)) : undefined;
    },
    atAllAddresses: (pod) => {
      const all = context.settings.dualStack ? [...new Set([pod.address, ...podAddresses(pod.objectKey)])] : [];
      return all.length < 2 ? [pod] : all.map((address) => withTwins({ ...pod, address }, all));
    },
    members: (key, lookup) => serviceMembers(key, { context, lookup, nodeLocality, podsKnown }),
  };
}

/** An address of its own is found by the address. */
function mayBeAt({ spec, status }: Pod, address: string): boolean {
  const known = [status.podIP, ...status.podIPs.map(({ ip }) => ip)].filter((ip) => ip !== undefined);
  return known.length === 0 || (spec.hostNetwork === true && known.map(canonicalAddress).includes(address));
}

const withAddress = (object: ConfigObject<Pod>, podIP: string): ConfigObject<Pod> => ({
  ...object,
  spec: { ...object.spec, status: { ...object.spec.status, podIP } },
});

interface Surroundings {
  readonly context: RegistryContext;
  readonly lookup: WorkloadLookup;
  readonly nodeLocality: (name: string) => Locality;
  /**
   * Whether there are Pods at all, as in a cluster. Then an address whose pod is not there (yet) is left out, as in Istio: nobody knows whether it
   * speaks mutual TLS, nor as whom. Who writes EndpointSlices into files need not write the Pods.
   */
  readonly podsKnown: (key: "") => boolean;
}

/**
 * Addresses listed by EndpointSlices, else by an Endpoints object. Where there is neither, which in a cluster lasts a moment and in files
 * may be meant, the pods that the selector takes. WorkloadEntries that it takes come on top, as in Istio, except behind a headless Service: its clients
 * look up addresses in the cluster's DNS, which knows none of them, and one without mutual TLS would take it from all.
 */
function serviceMembers(key: string, around: Surroundings): readonly Member[] {
  const { inputs } = around.context;
  const object = storedService(inputs.objects, key);
  if (object === undefined || object.spec.type === "ExternalName") return [];
  const { namespace, cluster = "" } = object;
  const { selector } = object.spec;
  const among: Among = cluster === "" ? "" : `@${cluster}`;
  const select = (kind: "Pod" | "WorkloadEntry"): readonly Member[] =>
    Object.keys(selector).length === 0 ? [] : around.lookup.selected(kind, { namespace, selector, among });

  const listed = listedAddresses(object, around.context);
  // Which pods are behind a Service of another cluster, EndpointSlices alone say.
  const found = listed === undefined ? (cluster === "" ? select("Pod") : []) : listedMembers(listed, { namespace, cluster }, around);
  const all = object.spec.clusterIP === "None" ? found : [...found, ...select("WorkloadEntry")];
  return object.spec.publishNotReadyAddresses === true ? all.map((member) => ({ ...member, health: "healthy" as const })) : all;
}

/** What EndpointSlices, or else an Endpoints object, list for a Service; undefined where there is neither. */
function listedAddresses(
  { namespace, name, cluster = "" }: Pick<ConfigObject, "namespace" | "name" | "cluster">,
  { inputs }: RegistryContext,
): readonly ListedAddress[] | undefined {
  const slices = inputs.objects.keys("label", `EndpointSlice/${namespace}/kubernetes.io/service-name=${name}${inCluster(cluster)}`);
  if (slices.length > 0) {
    return slices.flatMap((key) => {
      const slice = storedEndpointSlice(inputs.objects, key);
      return slice === undefined ? [] : sliceAddresses(slice);
    });
  }
  const endpoints = storedEndpoints(inputs.objects, `Endpoints/${namespace}/${name}${inCluster(cluster)}`);
  return endpoints === undefined ? undefined : endpointsAddresses(endpoints);
}

/** Listed addresses with what their pods say. One that two slices list (it may move between them) counts once, ready if either says so. */
function listedMembers(listed: readonly ListedAddress[], place: MemberPlace, around: Surroundings): readonly Member[] {
  const make = memberMaker(place.cluster || around.context.settings.clusterId);
  const byAddress = new Map<string, Member>();
  for (const one of listed) {
    const known = byAddress.get(one.address);
    if (known === undefined) {
      const member = listedMember(one, { ...place, around, make });
      if (member !== undefined) byAddress.set(one.address, member);
    } else {
      const health = known.health === "healthy" ? known.health : one.health;
      byAddress.set(one.address, { ...known, health, ports: { ...one.ports, ...known.ports } });
    }
  }
  const twins = twinsOf(listed, byAddress);
  return twins.size === 0 ? [...byAddress.values()] : [...byAddress.values()].map((one) => withTwins(one, twins.get(one.address)));
}

/** Addresses that are listed for a pod which is listed under several, by each of them: where slices of both families list it. */
function twinsOf(listed: readonly ListedAddress[], known: ReadonlyMap<string, Member>): ReadonlyMap<string, readonly string[]> {
  const byPod = new Map<string, string[]>();
  const isV6 = ({ address }: ListedAddress): boolean => address.includes(":");
  if (!listed.some(isV6) || listed.every(isV6)) return new Map();
  for (const { podKey, address } of listed) {
    if (podKey === undefined || !known.has(address)) continue;
    const before = byPod.get(podKey);
    if (before === undefined) byPod.set(podKey, [address]);
    else if (!before.includes(address)) before.push(address);
  }
  return new Map([...byPod.values()].filter((all) => all.length > 1).flatMap((all) => all.map((address) => [address, all] as const)));
}

const withTwins = (member: Member, all: readonly string[] | undefined): Member =>
  all === undefined ? member : { ...member, twins: all.filter((address) => address !== member.address) };

/** Namespace and cluster of a Service; "" is this one. */
interface MemberPlace {
  readonly namespace: string;
  readonly cluster: string;
}

function listedMember(
  one: ListedAddress,
  { namespace, cluster, around, make }: MemberPlace & { readonly around: Surroundings; readonly make: (raw: RawMember) => Member },
): Member | undefined {
  const listed = { origin: "slice", address: one.address, ports: one.ports, health: one.health, objectKey: one.objectKey } as const;
  const pod = podBehind(one, { namespace, cluster }, around);
  if (pod !== undefined) return { ...pod, ...listed, hostname: pod.hostname !== "" ? pod.hostname : one.hostname };
  if (one.podKey !== undefined && around.podsKnown("")) return undefined;
  const { mesh } = around.context;
  return make({
    ...listed,
    labels: NO_LABELS,
    namespace,
    workload: "",
    serviceAccount: "",
    network: mesh.clusterNetwork(cluster) || networkInCluster(mesh.networks(cluster), one.address),
    nodeName: one.nodeName,
    hostname: one.hostname,
    subdomain: "",
    locality: one.nodeName === "" ? NO_LOCALITY : around.nodeLocality(`${one.nodeName}${inCluster(cluster)}`),
    weight: 1,
  });
}

/** The pod that a listed address names, else the one that has the address. */
function podBehind(one: ListedAddress, { namespace, cluster }: MemberPlace, { context, lookup }: Surroundings): Member | undefined {
  if (one.podKey !== undefined) return lookup.workload(`${one.podKey}${inCluster(cluster)}`);
  const key = context.inputs.objects
    .keys("address", `${namespace}/${one.address}${cluster === "" ? "" : "@"}`)
    .find((candidate) => kindOfKey(candidate) === "Pod" && clusterOfKey(candidate) === cluster);
  return key === undefined ? undefined : lookup.workload(key);
}
