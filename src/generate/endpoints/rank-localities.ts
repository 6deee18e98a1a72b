import type { Labels } from "../../base/labels.ts";
import type { EndpointInput, LocalityInput } from "../../envoy/endpoint/load-assignment.ts";
import { formatLocality, type Locality, NO_LOCALITY } from "../../model/locality.ts";
import type { LocalityRules, Place } from "./assignment-key.ts";

/** An endpoint that is weighed against others. */
export interface WeighedEndpoint extends EndpointInput {
  readonly weight: number;
}

interface WeighedLocality extends LocalityInput {
  readonly weight: number;
}

/** An endpoint ready to send, with what ranking looks at. */
export interface PlacedEndpoint {
  readonly endpoint: WeighedEndpoint;
  readonly locality: Locality;
  readonly labels: Labels;
}

/**
 * Groups endpoints by locality and gives each group its priority and weight. Groups are sorted, so equal endpoints give equal bytes. A
 * client that does not know where it is is near to endpoints that do not either, as in Istio.
 */
export function rankLocalities(all: readonly PlacedEndpoint[], rules: LocalityRules | undefined, place: Place): readonly LocalityInput[] {
  const endpoints = countable(all);
  if (rules === undefined) return grouped(endpoints, () => 0);
  switch (rules.kind) {
    case "distribute": {
      const { locality } = place;
      const to = locality && rules.rules.find(({ from }) => matchesLocality(from, locality))?.to;
      const all = grouped(endpoints, () => 0);
      return to === undefined ? all : distributed(all, to);
    }
    case "failover": {
      const own = place.locality ?? NO_LOCALITY;
      return withoutGaps(grouped(endpoints, ({ locality }) => distance(own, locality, rules.regions)));
    }
    case "priority": {
      const { regions, labels: wanted } = rules;
      const own = place.locality ?? NO_LOCALITY;
      const among = (locality: Locality): number => (regions === undefined ? 0 : distance(own, locality, regions));
      return withoutGaps(
        grouped(endpoints, ({ labels, locality }) => unmatched(wanted, place.labels ?? {}, labels) * DISTANCES + among(locality)),
      );
    }
    case "zoneAware": {
      if (!rules.enabled) return grouped(endpoints, () => 0);
      const own = place.locality ?? NO_LOCALITY;
      return withoutGaps(
        grouped(
          endpoints,
          ({ labels, locality }) =>
            unmatched(rules.labels, place.labels ?? {}, labels) * DISTANCES + regionDistance(own, locality, rules.regions),
        ),
      );
    }
  }
}

/** Envoy sums up the weights of a cluster with 32 bits. */
const MOST_WEIGHT = 0xffff_ffff;

/** Weights that sum up to more than Envoy can count are made smaller in proportion. */
function countable(endpoints: readonly PlacedEndpoint[]): readonly PlacedEndpoint[] {
  const total = endpoints.reduce((sum, { endpoint }) => sum + endpoint.weight, 0);
  if (total <= MOST_WEIGHT) return endpoints;
  // What is at least one, however small its share, may make them somewhat more in the end.
  const scale = MOST_WEIGHT / 2 / total;
  return endpoints.map((one) => ({ ...one, endpoint: { ...one.endpoint, weight: Math.max(1, Math.floor(one.endpoint.weight * scale)) } }));
}

function grouped(endpoints: readonly PlacedEndpoint[], priorityOf: (endpoint: PlacedEndpoint) => number): readonly WeighedLocality[] {
  const groups = new Map<string, { readonly locality: Locality; readonly priority: number; readonly endpoints: WeighedEndpoint[] }>();
  const names = new Map<Locality, string>();
  for (const placed of endpoints) {
    const priority = priorityOf(placed);
    const name = names.get(placed.locality) ?? formatLocality(placed.locality);
    names.set(placed.locality, name);
    const id = `${name} ${priority}`;
    const group = groups.get(id);
    if (group === undefined) groups.set(id, { locality: placed.locality, priority, endpoints: [placed.endpoint] });
    else group.endpoints.push(placed.endpoint);
  }
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, group]) => ({ ...group, weight: group.endpoints.reduce((sum, { weight }) => sum + weight, 0) }));
}

/**
 * Each rule's share is divided among the localities it takes by their own weights; localities that no rule takes get nothing. Where none is taken
 * they stand there without endpoints: the cluster is known and has nobody, which is another thing than a cluster that does not exist.
 */
function distributed(all: readonly WeighedLocality[], to: Readonly<Record<string, number>>): readonly LocalityInput[] {
  const left = new Set(all);
  const result: LocalityInput[] = [];
  const patterns = Object.keys(to).sort((a, b) => specificity(b) - specificity(a) || (a < b ? -1 : 1));
  for (const pattern of patterns) {
    const share = to[pattern] ?? 0;
    const taken = [...left].filter(({ locality }) => matchesLocality(pattern, locality));
    const total = taken.reduce((sum, { weight }) => sum + weight, 0);
    for (const group of taken) {
      left.delete(group);
      if (share > 0) result.push({ ...group, weight: Math.ceil((share * group.weight) / total) });
    }
  }
  if (result.length === 0) return all.map((group) => ({ ...group, endpoints: [] }));
  return result.sort(
    (a, b) => all.findIndex(({ locality }) => locality === a.locality) - all.findIndex(({ locality }) => locality === b.locality),
  );
}

const specificity = (pattern: string): number => pattern.split("/").filter((part) => part !== "*" && part !== "").length;

/** More than `distance` ever says, so that labels count before places. */
const DISTANCES = 5;

/** 0 for the same region, then the region to fail over to, and all others. */
function regionDistance(own: Locality, other: Locality, regions: Readonly<Record<string, string>>): number {
  if (own.region === other.region) return 0;
  return regions[own.region] === other.region ? 1 : 2;
}

/** 0 for the same subzone, then the same zone, the same region, the region to fail over to, and all others. */
function distance(own: Locality, other: Locality, regions: Readonly<Record<string, string>>): number {
  if (own.region !== other.region) return regions[own.region] === other.region ? 3 : 4;
  if (own.zone !== other.zone) return 2;
  return own.subzone === other.subzone ? 0 : 1;
}

const NETWORK = "topology.istio.io/network";

/**
 * How many labels, counted from the first that differs, client and endpoint do not share. `label=value` demands that value. A network named
 * first sets all of another network behind all of the own, and within each the other labels go on counting.
 */
function unmatched(labels: readonly string[], client: Labels, endpoint: Labels): number {
  let behind = 0;
  for (const [index, label] of labels.entries()) {
    const [name = "", demanded] = label.split("=", 2);
    const wanted = demanded ?? client[name] ?? "";
    if ((endpoint[name] ?? "") === wanted) continue;
    if (index > 0 || label !== NETWORK) return behind + labels.length - index;
    behind = labels.length;
  }
  return behind;
}

/** Envoy wants priorities without gaps. */
function withoutGaps(groups: readonly WeighedLocality[]): readonly LocalityInput[] {
  const used = [...new Set(groups.map(({ priority }) => priority))].sort((a, b) => a - b);
  return groups.map((group) => ({ ...group, priority: used.indexOf(group.priority) }));
}

/** Whether a pattern such as `us`, `us/*` or `us/west/a` takes a locality. What a pattern leaves out is not looked at. */
export function matchesLocality(pattern: string, { region, zone, subzone }: Locality): boolean {
  const parts = [region, zone, subzone];
  for (const [index, wanted] of pattern.split("/").entries()) {
    if (wanted === "*" || wanted === "") return true;
    if (parts[index] !== wanted) return false;
  }
  return true;
}
