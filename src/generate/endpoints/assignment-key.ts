import { contentHash } from "../../base/hash.ts";
import { Interned } from "../../base/interned.ts";
import { type Labels, NO_LABELS } from "../../base/labels.ts";
import type { Locality } from "../../model/locality.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { ServiceRef } from "../../model/service.ts";

/** What a load assignment is made from, as far as it does not depend on where the client runs. */
export interface AssignmentPlan {
  readonly cluster: string;
  readonly service: ServiceRef;
  readonly port: number;
  /** Labels of the subset. */
  readonly labels: Labels;
  /** `offer`: endpoints say whether they take mutual TLS; `demand`: likewise, even where a policy of theirs says they do not; `hide`: they do not, the cluster has decided; `only`: the others are left out; `none`: all are, for the cluster is of mutual TLS and a rule says there is none. */
  readonly mutualTls: "offer" | "demand" | "hide" | "only" | "none";
  /** Send unhealthy endpoints too, so that Envoy knows how many there are. Not where too many of them would make it use them (minHealthPercent). */
  readonly unhealthy: boolean;
  /** Send endpoints that take no new sessions: the service has some. */
  readonly draining: boolean;
  readonly clusterLocal: boolean;
  readonly nodeLocal: boolean;
  readonly locality: LocalityRules | undefined;
}

/** How endpoints are ranked by where they are. */
export type LocalityRules =
  | { readonly kind: "distribute"; readonly rules: readonly { readonly from: string; readonly to: Readonly<Record<string, number>> }[] }
  | { readonly kind: "failover"; readonly regions: Readonly<Record<string, string>> }
  /** By labels first; where regions are said too, by those among equals. */
  | { readonly kind: "priority"; readonly labels: readonly string[]; readonly regions: Readonly<Record<string, string>> | undefined }
  /** All of the client's region are alike, Envoy chooses among its zones; other regions follow. */
  | {
      readonly kind: "zoneAware";
      readonly enabled: boolean;
      readonly labels: readonly string[];
      readonly regions: Readonly<Record<string, string>>;
      readonly minClusterSize: number | undefined;
    };

const labelsOf = (rules: LocalityRules | undefined): readonly string[] =>
  rules?.kind === "priority" || (rules?.kind === "zoneAware" && rules.enabled) ? rules.labels : [];

const asksForLocality = (rules: LocalityRules | undefined): boolean =>
  rules !== undefined && (rules.kind === "priority" ? rules.regions !== undefined : rules.kind !== "zoneAware" || rules.enabled);

/** Families of the addresses a client has: those it can connect to. */
export type AddressFamily = "v4" | "v6" | "all";

/** What must be known of a client to make its assignments. */
export interface PlaceNeeds {
  readonly locality: boolean;
  readonly labels: readonly string[];
  readonly nodeName: boolean;
  readonly clusterId: boolean;
  readonly network: boolean;
}

/** What is known of where a client runs: exactly what is needed, so that clients that agree on it share their assignments. */
export interface Place {
  readonly locality?: Locality;
  readonly labels?: Labels;
  readonly nodeName?: string;
  readonly clusterId?: string;
  readonly network?: { readonly own: string; readonly view: readonly string[] };
  /** Families of the client's addresses, where they are not the usual IPv4 alone. */
  readonly family?: Exclude<AddressFamily, "v4">;
}

/** Everything one load assignment depends on besides endpoints and policies of their workloads. `id` spells it out. */
export interface AssignmentKey {
  readonly id: string;
  readonly plan: AssignmentPlan;
  readonly place: Place;
}

/** Keys of all assignments a client asks for. Equal ids mean equal keys. */
export interface AssignmentKeys {
  readonly id: string;
  readonly keys: readonly AssignmentKey[];
}

export const assignmentKeys = (keys: readonly AssignmentKey[]): AssignmentKeys => ({
  id: contentHash(keys.map(({ id }) => id).join("\n")),
  keys,
});

/** Nothing is known of where a client runs, because nothing needs to be. */
export const NOWHERE: Place = {};

/** What the plans need to know, all together. */
export function needsOf(plans: readonly AssignmentPlan[], networks: boolean): PlaceNeeds {
  const labels = new Set<string>();
  for (const { locality } of plans) for (const label of labelsOf(locality)) labels.add(label.split("=", 1)[0] ?? label);
  return {
    locality: plans.some(({ locality }) => asksForLocality(locality)),
    labels: [...labels].sort(),
    nodeName: plans.some(({ nodeLocal }) => nodeLocal),
    clusterId: plans.some(({ clusterLocal }) => clusterLocal),
    network: networks,
  };
}

/** Takes from a proxy what is needed. */
export function placeOf(view: ProxyView, needs: PlaceNeeds): Place {
  const network = needs.network || view.metadata.requestedNetworkView.length > 0;
  const family = addressFamily(view.addresses);
  if (!needs.locality && !needs.nodeName && !needs.clusterId && !network && needs.labels.length === 0 && family === "v4") return NOWHERE;
  const known = needs.labels.length === 0 ? {} : topologyLabels(view);
  return {
    ...(needs.locality && { locality: view.locality }),
    ...(needs.labels.length > 0 && { labels: Object.fromEntries(needs.labels.map((label) => [label, known[label] ?? ""])) }),
    ...(needs.nodeName && { nodeName: view.nodeName }),
    ...(needs.clusterId && { clusterId: view.clusterId }),
    ...(network && { network: { own: view.network, view: view.metadata.requestedNetworkView } }),
    ...(family !== "v4" && { family }),
  };
}

export function addressFamily(addresses: readonly string[]): AddressFamily {
  const v6 = addresses.some((address) => address.includes(":"));
  const v4 = addresses.some((address) => !address.includes(":"));
  return v6 ? (v4 ? "all" : "v6") : "v4";
}

const plans = new Interned<AssignmentPlan>();

/** Equal plans as one object: every class of clients plans nearly the same, and all of them are remembered. */
export function sharedPlan(plan: AssignmentPlan): AssignmentPlan {
  return plans.of(assignmentKeyAt(plan, NOWHERE).id, () => plan);
}

const placeless = new WeakMap<AssignmentPlan, AssignmentKey>();

/** Narrows a place to what one plan looks at, so that assignments without rules about places are shared by all. */
export function assignmentKey(plan: AssignmentPlan, place: Place): AssignmentKey {
  if (place !== NOWHERE) return assignmentKeyAt(plan, narrowed(plan, place));
  const known = placeless.get(plan) ?? assignmentKeyAt(plan, NOWHERE);
  placeless.set(plan, known);
  return known;
}

function assignmentKeyAt(plan: AssignmentPlan, where: Place): AssignmentKey {
  const { cluster, service, labels, mutualTls, unhealthy, draining, clusterLocal, nodeLocal, locality } = plan;
  const health = `${unhealthy ? "+unhealthy" : ""}${draining ? "+draining" : ""}`;
  const flags = `${mutualTls}${health}${clusterLocal ? "+cluster" : ""}${nodeLocal ? "+node" : ""}`;
  const rules = locality === undefined && where === NOWHERE && labels === NO_LABELS ? "" : JSON.stringify([labels, locality, where]);
  return { id: `${cluster}@${service.namespace}${service.edition ?? ""}|${flags}|${rules}`, plan, place: where };
}

function narrowed(plan: AssignmentPlan, place: Place): Place {
  const rules = plan.locality;
  return {
    ...(asksForLocality(rules) && place.locality !== undefined && { locality: place.locality }),
    ...(labelsOf(rules).length > 0 && place.labels !== undefined && { labels: place.labels }),
    ...(plan.nodeLocal && place.nodeName !== undefined && { nodeName: place.nodeName }),
    ...(plan.clusterLocal && place.clusterId !== undefined && { clusterId: place.clusterId }),
    ...(place.network !== undefined && { network: place.network }),
    ...(place.family !== undefined && { family: place.family }),
  };
}

/** Labels of a workload with those that follow from where it runs, as `failoverPriority` may name them. */
export function topologyLabels(of: Pick<ProxyView, "labels" | "locality" | "network" | "clusterId" | "nodeName">): Labels {
  const { region, zone, subzone } = of.locality;
  return {
    ...of.labels,
    ...(region !== "" && { "topology.kubernetes.io/region": region }),
    ...(zone !== "" && { "topology.kubernetes.io/zone": zone }),
    ...(subzone !== "" && { "topology.istio.io/subzone": subzone }),
    ...(of.network !== "" && { "topology.istio.io/network": of.network }),
    ...(of.clusterId !== "" && { "topology.istio.io/cluster": of.clusterId }),
    ...(of.nodeName !== "" && { "kubernetes.io/hostname": of.nodeName }),
  };
}
