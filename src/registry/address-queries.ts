import { canonicalAddress } from "../base/address.ts";
import { matchesLabels } from "../base/labels.ts";
import { clusterOfKey, inCluster } from "../config/object.ts";
import type { Query } from "../engine/index.ts";
import type { ServiceInstance } from "../model/endpoint.ts";
import { refOf, type ServiceRef, serviceKey } from "../model/service.ts";
import type { CatalogQueries } from "./catalog-queries.ts";
import { claimedPod, type PodClaim } from "./claimed-pod.ts";
import type { Declaration } from "./declaration.ts";
import { endpointOf, type Member } from "./member.ts";
import type { MemberQueries } from "./member-queries.ts";
import type { Workload } from "./registry.ts";
import type { RegistryContext } from "./registry-context.ts";
import { type Among, selectorKeys } from "./selection.ts";
import { kindOfKey, serviceOfSlice } from "./stored-object.ts";

/** An address in the namespace of the proxy that asks: services of other namespaces cannot claim it. */
export interface AddressKey {
  readonly namespace: string;
  readonly address: string;
  /** Where the workload is: another cluster of the mesh, or "". */
  readonly cluster: string;
  /** Name of its pod, where the address alone does not tell; or "". */
  readonly pod: string;
  /** What its proxy says of it, where no object does; or "". */
  readonly claim: string;
}

/** Queries that start from an address. */
export interface AddressQueries {
  readonly instancesAt: Query<AddressKey, readonly ServiceInstance[]>;
  readonly workloadAt: Query<AddressKey, Workload | undefined>;
  readonly isRemote: Query<string, boolean>;
}

const addressId = ({ namespace, address }: Pick<AddressKey, "namespace" | "address">): string =>
  `${namespace}/${canonicalAddress(address)}`;
const placeId = (key: AddressKey): string => `${addressId(key)}${inCluster(key.cluster)}|${key.pod}|${key.claim}`;

/**
 * Defines the queries. They find the objects that name the address through the store's index and follow only those, so a change of an
 * endpoint reaches the addresses of its own service and no others.
 */
export function defineAddressQueries(context: RegistryContext, catalog: CatalogQueries, members: MemberQueries): AddressQueries {
  const { engine, inputs, settings } = context;
  const claims = defineClaims(context, catalog, members);
  const served = engine.query<ServiceRef, ReadonlyMap<string, readonly ServiceInstance[]>>({
    name: "registry.served",
    id: serviceKey,
    compute: (ref) => servedBy(ref, catalog, members),
  });

  return {
    instancesAt: engine.query<AddressKey, readonly ServiceInstance[]>({
      name: "registry.instancesAt",
      id: placeId,
      compute: (at) => {
        const keys = keysAt(context, at);
        const claimed = at.claim === "" ? undefined : claimedAt(at, settings.clusterId);
        const pod = podAt(at, keys, members) ?? claimed;
        const address = canonicalAddress(at.address);
        const clusters = new Set(
          [...keys, ...(pod === undefined ? [] : [pod.objectKey])].map((key) => clusterOfKey(key) || settings.clusterId),
        );
        const listed = (ref: ServiceRef): readonly ServiceInstance[] =>
          (served(ref).get(address) ?? []).filter(({ endpoint }) => clusters.has(endpoint.clusterId));
        return byHost([...keys.flatMap((key) => claims.of(key, at.namespace)), ...claims.selecting(pod, at.namespace)]).flatMap((ref) =>
          pod === undefined
            ? listed(ref)
            : podInstances(ref, { ...pod, address }, { catalog, listed, alone: pod === claimed || keys.includes(pod.objectKey) }),
        );
      },
    }),
    workloadAt: engine.query<AddressKey, Workload | undefined>({
      name: "registry.workloadAt",
      id: placeId,
      compute: (at) => {
        const keys = keysAt(context, at);
        const member = podAt(at, keys, members) ?? memberAt(canonicalAddress(at.address), keys, members);
        return member === undefined ? undefined : workloadOf(member);
      },
    }),
    isRemote: engine.query<string, boolean>({
      name: "registry.isRemote",
      compute: (cluster) => inputs.objects.keys("remoteCluster", cluster).length > 0,
    }),
  };
}

/** Which services of a namespace claim a workload. */
interface Claims {
  /** Those that the object with this key makes: its own hosts, the Service of a slice, or what selects the workload it is. */
  of(key: string, namespace: string): readonly ServiceRef[];
  /** Those whose selector takes the workload. */
  selecting(member: Member | undefined, namespace: string): readonly ServiceRef[];
}

function defineClaims({ engine, inputs }: RegistryContext, catalog: CatalogQueries, members: MemberQueries): Claims {
  const sliceService = engine.query<string, string>({
    name: "registry.sliceService",
    compute: (key) => serviceOfSlice(inputs.objects, key),
  });
  const refsOf = (key: string, namespace: string): readonly ServiceRef[] =>
    (catalog.declaration(key)?.hosts ?? []).map((host) => catalog.whole({ namespace, host }));
  const selecting = (member: Member | undefined, namespace: string): readonly ServiceRef[] => {
    if (member === undefined) return [];
    const { labels, objectKey } = member;
    const cluster = clusterOfKey(objectKey);
    const among: Among = cluster === "" ? "" : `@${cluster}`;
    const keys = [
      ...selectorKeys(inputs.objects, "Service", { namespace, labels, among }),
      ...selectorKeys(inputs.objects, "ServiceEntry", { namespace, labels, among: "" }),
    ];
    return keys
      .filter((key) => matchesLabels(catalog.declaration(key)?.selector ?? {}, member.labels))
      .flatMap((key) => refsOf(key, namespace));
  };
  const of = (key: string, namespace: string): readonly ServiceRef[] => {
    switch (kindOfKey(key)) {
      case "ServiceEntry":
        return refsOf(key, namespace);
      case "EndpointSlice":
      case "Endpoints":
        return refsOf(`Service/${namespace}/${sliceService(key)}${inCluster(clusterOfKey(key))}`, namespace);
      default:
        return selecting(members.workload(key), namespace);
    }
  };
  return { of, selecting };
}

/** Each host once, in the order of their names. */
const byHost = (refs: readonly ServiceRef[]): readonly ServiceRef[] =>
  [...new Map(refs.map((ref) => [ref.host, ref])).values()].sort((a, b) => (a.host < b.host ? -1 : 1));

interface InstanceSources {
  readonly catalog: CatalogQueries;
  /** What EndpointSlices and other objects list. */
  readonly listed: (ref: ServiceRef) => readonly ServiceInstance[];
  /** Whether the pod has the address for itself. */
  readonly alone: boolean;
}

/**
 * What a pod serves of a service. Where the selector of its Service takes the pod, that alone says so, as in Istio: its proxy has its ports from the first
 * moment on, whether or not an EndpointSlice lists the pod yet, and endpoints that come and go do not touch it. Ports whose name no container has, and
 * Services without a selector, are for EndpointSlices to say; where the pod shares the address, a Service that selects others means those.
 */
function podInstances(ref: ServiceRef, pod: Member, { catalog, listed, alone }: InstanceSources): readonly ServiceInstance[] {
  const declarations = catalog.declarations(ref);
  const declaration = declarations.find((one) => selectsPod(one, pod));
  if (declaration === undefined) return alone || declarations.every(({ selector }) => selector === undefined) ? listed(ref) : [];
  const ports = (catalog.service(ref)?.ports ?? []).toSorted((a, b) => a.number - b.number);
  const own = ports.map(({ name, number }) => {
    const declared = declaration.ports.find((port) => port.number === number);
    const endpoint = declared && endpointOf(pod, declared, "Kubernetes");
    return endpoint && { service: refOf(ref), servicePort: { name, number }, endpoint };
  });
  return own.every((one) => one !== undefined)
    ? own
    : ports.flatMap(({ number }, index) => own[index] ?? listed(ref).filter(({ servicePort }) => servicePort.number === number));
}

/** Whether it is a Service of the pod's own cluster that selects it. */
const selectsPod = ({ source, objectKey, selector }: Declaration, pod: Member): boolean =>
  source === "Kubernetes" &&
  selector !== undefined &&
  clusterOfKey(objectKey) === clusterOfKey(pod.objectKey) &&
  matchesLabels(selector, pod.labels);

/** The pod that has the address, else the one of that name, where the address may be its own. */
function podAt(at: AddressKey, keys: readonly string[], members: MemberQueries): Member | undefined {
  for (const key of keys) {
    const member = kindOfKey(key) === "Pod" ? members.workload(key) : undefined;
    if (member !== undefined) return member;
  }
  if (at.pod === "") return undefined;
  return members.namedPod({ key: `Pod/${at.namespace}/${at.pod}${inCluster(at.cluster)}`, address: canonicalAddress(at.address) });
}

const claimedAt = ({ namespace, address, cluster, claim }: AddressKey, clusterId: string): Member =>
  claimedPod(JSON.parse(claim) as PodClaim, {
    namespace,
    address: canonicalAddress(address),
    cluster,
    clusterId: cluster || clusterId,
  });

/** The first of the other objects that stands for a workload at the address: WorkloadEntries, then endpoints of ServiceEntries. */
function memberAt(address: string, keys: readonly string[], members: MemberQueries): Member | undefined {
  for (const key of keys) {
    const member = kindOfKey(key) === "WorkloadEntry" ? members.workload(key) : undefined;
    if (member !== undefined) return member;
  }
  for (const key of keys) {
    const member = kindOfKey(key) === "ServiceEntry" ? members.members(key).find((one) => one.address === address) : undefined;
    if (member !== undefined) return member;
  }
  return undefined;
}

/**
 * Objects that name an address. Clusters may use the same addresses: of a workload in another cluster count what that cluster says, else what was
 * written here by hand; of any other what is here, and only where nothing is, what is elsewhere.
 */
function keysAt({ inputs }: RegistryContext, at: AddressKey): readonly string[] {
  const elsewhere = (): readonly string[] => inputs.objects.keys("address", `${addressId(at)}@`);
  const here = (): readonly string[] => inputs.objects.keys("address", addressId(at));
  if (at.cluster === "") return firstOf(here, elsewhere);
  const there = (): readonly string[] => elsewhere().filter((key) => clusterOfKey(key) === at.cluster);
  return firstOf(there, () => here().filter((key) => WRITTEN_BY_HAND.has(kindOfKey(key))));
}

const WRITTEN_BY_HAND: ReadonlySet<string> = new Set(["ServiceEntry", "WorkloadEntry"]);

const firstOf = (...finds: readonly (() => readonly string[])[]): readonly string[] => {
  for (const find of finds) {
    const found = find();
    if (found.length > 0) return found;
  }
  return [];
};

/** The endpoints of all ports of a service, by address. */
function servedBy(ref: ServiceRef, catalog: CatalogQueries, members: MemberQueries): ReadonlyMap<string, readonly ServiceInstance[]> {
  const byAddress = new Map<string, ServiceInstance[]>();
  const service = refOf(ref);
  for (const { name, number } of (catalog.service(ref)?.ports ?? []).toSorted((a, b) => a.number - b.number)) {
    for (const endpoint of members.endpoints({ ref, port: number })) {
      const instance = { service, servicePort: { name, number }, endpoint };
      const found = byAddress.get(endpoint.address);
      if (found === undefined) byAddress.set(endpoint.address, [instance]);
      else found.push(instance);
    }
  }
  return byAddress;
}

const workloadOf = (member: Member): Workload => ({
  name: member.workload,
  namespace: member.namespace,
  labels: member.labels,
  serviceAccount: member.serviceAccount,
  network: member.network,
  locality: member.locality,
  nodeName: member.nodeName,
});
