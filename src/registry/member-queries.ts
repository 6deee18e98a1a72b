import { matchesLabels } from "../base/labels.ts";
import { clusterOfKey } from "../config/object.ts";
import type { Query } from "../engine/index.ts";
import type { Endpoint } from "../model/endpoint.ts";
import { type ServiceRef, serviceKey } from "../model/service.ts";
import type { CatalogQueries } from "./catalog-queries.ts";
import { contributors, type Declaration } from "./declaration.ts";
import { defineKubernetesMembers, type WorkloadLookup } from "./kubernetes-members.ts";
import { endpointOf, type Member, memberMaker, type RawMember } from "./member.ts";
import type { RegistryContext } from "./registry-context.ts";
import { type Among, selectedKeys } from "./selection.ts";
import { hostMember, inlineMembers } from "./service-entry.ts";
import { kindOfKey, storedServiceEntry, storedWorkloadEntry, storedWorkloadGroup } from "./stored-object.ts";
import { groupKeyOf, workloadEntryMember } from "./workload-entry.ts";

/** One port of one service. */
export interface PortKey {
  readonly ref: ServiceRef;
  readonly port: number;
}

/** Queries that say who serves. */
export interface MemberQueries {
  /** A WorkloadEntry or Pod by object key; undefined while it has no address or has ended. */
  readonly workload: Query<string, Member | undefined>;
  /** A Pod by object key, at an address that may be its own without being known for it alone; undefined where it cannot be. */
  readonly namedPod: Query<{ readonly key: string; readonly address: string }, Member | undefined>;
  /** Everything behind a Service or ServiceEntry, by object key, whatever the port. */
  readonly members: Query<string, readonly Member[]>;
  readonly endpoints: Query<PortKey, readonly Endpoint[]>;
  readonly serviceAccounts: Query<PortKey, readonly string[]>;
}

/** Of which clusters a ServiceEntry selects workloads: all, as in Istio. */
const EVERYWHERE: readonly Among[] = ["", "@"];

const portId = (key: PortKey): string => `${serviceKey(key.ref)}:${key.port}`;

/** Defines the queries. The chain is object → members → endpoints of a port; each link stops a change that does not concern it. */
export function defineMembers(context: RegistryContext, catalog: CatalogQueries): MemberQueries {
  const { engine, settings } = context;
  const kubernetes = defineKubernetesMembers(context);

  const workload = engine.query<string, Member | undefined>({
    name: "registry.workload",
    compute: (key) => {
      const raw = kindOfKey(key) === "Pod" ? kubernetes.pod(key) : entryMember(context, key);
      return raw === undefined ? undefined : memberMaker(clusterOfKey(key) || settings.clusterId)(raw);
    },
  });

  const namedPod = engine.query<{ readonly key: string; readonly address: string }, Member | undefined>({
    name: "registry.namedPod",
    id: ({ key, address }) => `${key} ${address}`,
    compute: ({ key, address }) => {
      const raw = kubernetes.podThatMayBeAt(key, address);
      return raw === undefined ? undefined : memberMaker(clusterOfKey(key) || settings.clusterId)(raw);
    },
  });

  const selected = membersSelecting(context, workload);

  const members = engine.query<string, readonly Member[]>({
    name: "registry.members",
    compute: (key) =>
      kindOfKey(key) === "Service"
        ? kubernetes.members(key, { workload, selected })
        : membersOfEntry(context, key, { selected, atAllAddresses: kubernetes.atAllAddresses }),
  });

  const endpointsOf = (declaration: Declaration, { ref, port }: PortKey): readonly Endpoint[] => {
    const declared = declaration.ports.find(({ number }) => number === port);
    if (declared === undefined) return [];
    const found = members(declaration.objectKey);
    const all =
      found.length === 0 && servesItself(declaration) ? [memberMaker(settings.clusterId)(hostMember(declaration, ref.host))] : found;
    return all.flatMap((member) => endpointOf(member, declared, declaration.source) ?? []);
  };
  const endpoints = engine.query<PortKey, readonly Endpoint[]>({
    name: "registry.endpoints",
    id: portId,
    compute: (key) => {
      const all = contributors(catalog.declarations(key.ref)).map((declaration) => endpointsOf(declaration, key));
      return all.length === 1 ? (all[0] ?? []) : distinct(all.flat());
    },
  });

  const serviceAccounts = engine.query<PortKey, readonly string[]>({
    name: "registry.serviceAccounts",
    id: portId,
    compute: (key) => {
      const declared = catalog.declarations(key.ref)[0]?.declaredAccounts ?? [];
      const named = endpoints(key).filter(({ serviceAccount }) => serviceAccount !== "");
      return [...new Set([...declared, ...named.map(({ namespace, serviceAccount }) => `${namespace}/${serviceAccount}`)])].sort();
    },
  });

  return { workload, namedPod, members, endpoints, serviceAccounts };
}

/** Where a ServiceEntry finds the workloads it selects, and the other addresses of a pod. */
type EntryLookup = Pick<WorkloadLookup, "selected"> & Pick<ReturnType<typeof defineKubernetesMembers>, "atAllAddresses">;

/** The endpoints that a ServiceEntry lists itself, and the workloads it selects. */
function membersOfEntry(
  { inputs, mesh, settings }: RegistryContext,
  key: string,
  { selected, atAllAddresses }: EntryLookup,
): readonly Member[] {
  const object = storedServiceEntry(inputs.objects, key);
  if (object === undefined) return [];
  const inline = inlineMembers(object, { networks: mesh.networks("") }).map(memberMaker(settings.clusterId));
  const selector = object.spec.workloadSelector?.labels;
  if (selector === undefined) return inline;
  const { namespace } = object;
  const of = (kind: "WorkloadEntry" | "Pod"): readonly Member[] =>
    EVERYWHERE.flatMap((among) => selected(kind, { namespace, selector, among }));
  return [...inline, ...of("WorkloadEntry"), ...of("Pod").flatMap(atAllAddresses)];
}

/** WorkloadEntries and Pods of a namespace with some labels. */
function membersSelecting({ inputs }: RegistryContext, workload: MemberQueries["workload"]): WorkloadLookup["selected"] {
  return (kind, { namespace, selector, among }) => {
    const keys = new Set(selectedKeys(inputs.objects, kind, { namespace, selector, among }));
    const found = [...keys].flatMap((key) => workload(key) ?? []);
    if (kind === "Pod") return found;
    const grouped = inputs.objects.keys("label", `WorkloadEntry/${namespace}/@grouped${among}`).filter((key) => !keys.has(key));
    return [...found, ...grouped.flatMap((key) => workload(key) ?? []).filter((member) => matchesLabels(selector, member.labels))];
  };
}

/** A DNS ServiceEntry that names no endpoints stands for the host itself. */
const servesItself = (declaration: Declaration): boolean =>
  declaration.selector === undefined && (declaration.resolution === "dns" || declaration.resolution === "dnsRoundRobin");

function entryMember({ inputs, mesh }: RegistryContext, key: string): RawMember | undefined {
  const object = storedWorkloadEntry(inputs.objects, key);
  if (object === undefined) return undefined;
  const groupKey = groupKeyOf(object);
  const group = groupKey === undefined ? undefined : storedWorkloadGroup(inputs.objects, groupKey);
  const { cluster = "" } = object;
  const member = workloadEntryMember(object, group, { networks: mesh.networks(cluster), reported: () => inputs.health.get(key) });
  // One in another cluster that does not say otherwise is in that cluster's network.
  const placed = member === undefined || member.network !== "" || cluster === "";
  return placed ? member : { ...member, network: mesh.clusterNetwork(cluster) };
}

/** Each address and port of a network once: two objects may name the same workload. The first has it. Those without an address are each their own. */
function distinct(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const seen = new Set<string>();
  return endpoints.filter((endpoint) => {
    if (endpoint.address === "") return true;
    const id = `${endpoint.network} ${endpoint.address}:${endpoint.port}`;
    return seen.size !== seen.add(id).size;
  });
}
