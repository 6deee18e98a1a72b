import { isIp } from "../../base/address.ts";
import { matchesLabels } from "../../base/labels.ts";
import type { Query } from "../../engine/index.ts";
import type { LoadAssignmentInput, LocalityInput } from "../../envoy/endpoint/load-assignment.ts";
import type { Endpoint } from "../../model/endpoint.ts";
import { formatLocality } from "../../model/locality.ts";
import { type SessionSettings, saysDraining } from "../../model/session.ts";
import { canonicalRevision, canonicalService } from "../../model/standard-metrics.ts";
import type { GenerateContext } from "../context.ts";
import { remembered } from "../remembered.ts";
import { type AddressFamily, type AssignmentKey, type AssignmentPlan, type Place, topologyLabels } from "./assignment-key.ts";
import type { NetworkGatewayQueries } from "./gateway-services.ts";
import { canReach, inView, type NetworkedEndpoint, throughGateways, weightScale, withoutDetours } from "./network-gateways.ts";
import { definePeerModes, type PeerModes, refusesMutualTls } from "./peer-modes.ts";
import { type PlacedEndpoint, rankLocalities, type WeighedEndpoint } from "./rank-localities.ts";

/** Chooses, ranks and weighs the endpoints of a cluster. */
export interface AssignmentSelection {
  readonly peerModes: Query<string, PeerModes>;
  /**
   * Call inside a query: reads are recorded. `resolved`: addresses must be IP addresses, since nobody will look names up. `direct`: only
   * endpoints that the client reaches by itself over the network, each address once: gRPC, which has no proxy to do more.
   */
  select(key: AssignmentKey, options: { readonly resolved: boolean; readonly direct?: boolean }): LoadAssignmentInput;
}

export function defineAssignmentSelection(
  ctx: GenerateContext,
  { networkGateways, namedGateways }: Pick<NetworkGatewayQueries, "networkGateways" | "namedGateways">,
): AssignmentSelection {
  const peerModes = definePeerModes(ctx);
  const acrossNetworks = (endpoints: readonly NetworkedEndpoint[], place: Place, resolved: boolean): readonly PlacedEndpoint[] =>
    place.network === undefined ? endpoints : throughGateways(endpoints, resolved ? networkGateways("") : namedGateways(""), place);
  const nearby = (endpoints: readonly NetworkedEndpoint[], { network }: Place, scaled: boolean): readonly PlacedEndpoint[] => {
    if (network === undefined) return endpoints;
    const gateways = networkGateways("");
    const scale = scaled ? weightScale(gateways) : 1;
    const near = withoutDetours(endpoints, network, gateways);
    return scale === 1 ? near : near.map((one) => ({ ...one, endpoint: { ...one.endpoint, weight: one.endpoint.weight * scale } }));
  };
  return {
    peerModes,
    select({ plan, place }, { resolved, direct = false }) {
      const chosen = ctx.registry
        .endpoints(plan.service, plan.port)
        .map((endpoint) => withLabelledHealth(endpoint, ctx.settings.sessions))
        .filter(
          (endpoint) =>
            isWanted(endpoint, plan, place) && (!resolved || endpoint.unixPath || endpoint.address === "" || isIp(endpoint.address)),
        );
      const modesOf = remembered(peerModes);
      const family = place.family ?? "v4";
      const reached = ofOwnFamilies(direct ? distinctAddresses(chosen) : chosen, family);
      const together = ctx.settings.dualStack && family === "all" && !direct;
      const all = (together ? oncePerWorkload(reached) : reached).map((endpoint) => {
        const one = placedEndpoint(endpoint, plan, modesOf);
        return together && endpoint.twins !== undefined ? { ...one, endpoint: { ...one.endpoint, others: endpoint.twins } } : one;
      });
      const placed = inView(all, place.network);
      const only = plan.mutualTls === "only" || plan.mutualTls === "none";
      const found = only || direct ? nearby(placed, place, only) : acrossNetworks(placed, place, resolved);
      // One without an address is reached through the gateways of its network, or not at all.
      const reachable = found.filter(({ endpoint }) => endpoint.address !== "");
      const used = only ? reachable.filter(({ endpoint }) => endpoint.mutualTls && plan.mutualTls === "only") : reachable;
      const localities = rankLocalities(used, plan.locality, place);
      const seen = place.network === undefined ? reachable : placed;
      return { clusterName: plan.cluster, localities: used === seen || direct ? localities : [...localities, ...emptied(seen, used)] };
    },
  };
}

/** Localities of which nobody is used are named all the same, as in Istio. */
function emptied(all: readonly PlacedEndpoint[], used: readonly PlacedEndpoint[]): readonly LocalityInput[] {
  const kept = new Set(used.map(({ locality }) => formatLocality(locality)));
  const left = new Map(all.map(({ locality }) => [formatLocality(locality), locality]));
  return [...left]
    .filter(([name]) => !kept.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, locality]) => ({ locality, priority: 0, weight: undefined, endpoints: [] }));
}

/** Of a service with endpoints of both families a client gets those it can reach; where it could reach none, all: there may be a way we do not see. */
function ofOwnFamilies(endpoints: readonly Endpoint[], family: AddressFamily): readonly Endpoint[] {
  if (family === "all") return endpoints;
  const reachable = endpoints.filter(({ address, unixPath }) => unixPath || !isIp(address) || canReach(family, address));
  return reachable.length === 0 ? endpoints : reachable;
}

/** For clients that use both families (ISTIO_DUAL_STACK) a workload with an address of each is one endpoint, as in Istio: it has one share and one health. */
function oncePerWorkload(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  if (endpoints.every(({ twins }) => twins === undefined)) return endpoints;
  const meant = new Set<string>();
  return endpoints.filter(({ address, port, twins = [] }) => {
    if (meant.has(`${address} ${port}`)) return false;
    for (const twin of twins) meant.add(`${twin} ${port}`);
    return true;
  });
}

function distinctAddresses(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const seen = new Set<string>();
  return endpoints.filter(({ address, port, unixPath }) => !unixPath && seen.size < seen.add(`${address} ${port}`).size);
}

function isWanted(endpoint: Endpoint, plan: AssignmentPlan, place: Place): boolean {
  // What is going away is not sent at all: it may finish what it has, and counts in nobody's share of healthy hosts. Sessions are kept to the end.
  if (endpoint.health === "terminating" || (endpoint.health === "draining" && !plan.draining)) return false;
  if (endpoint.health === "unhealthy" && !plan.unhealthy) return false;
  if (plan.clusterLocal && endpoint.clusterId !== place.clusterId) return false;
  if (plan.nodeLocal && endpoint.nodeName !== place.nodeName) return false;
  return matchesLabels(plan.labels, endpoint.labels);
}

/** A workload may say by label that it takes no new sessions. */
const withLabelledHealth = (endpoint: Endpoint, settings: SessionSettings): Endpoint =>
  endpoint.health !== "terminating" && saysDraining(endpoint.labels, settings) ? { ...endpoint, health: "draining" } : endpoint;

function placedEndpoint(endpoint: Endpoint, plan: AssignmentPlan, peerModes: (namespace: string) => PeerModes): NetworkedEndpoint {
  const refuses = (): boolean => refusesMutualTls(peerModes(endpoint.namespace), endpoint.labels, endpoint.port);
  const takesTls = endpoint.tlsMode === "istio" && (plan.mutualTls === "demand" || !refuses());
  const input: WeighedEndpoint = {
    address: endpoint.address,
    unixPath: endpoint.unixPath,
    port: endpoint.port,
    weight: Math.max(1, endpoint.weight),
    health: endpoint.health === "terminating" ? "unhealthy" : endpoint.health,
    mutualTls: takesTls && plan.mutualTls !== "hide",
    workload: workloadOf(endpoint),
  };
  const labels = plan.locality?.kind === "priority" ? topologyLabels(endpoint) : endpoint.labels;
  return { endpoint: input, locality: endpoint.locality, labels, network: endpoint.network };
}

/** Istio's compact description of a workload. Canonical name and revision default from the usual labels. */
function workloadOf({ workload, namespace, labels, clusterId }: Endpoint): string {
  return [workload, namespace, canonicalService(labels, workload), canonicalRevision(labels), clusterId].join(";");
}
