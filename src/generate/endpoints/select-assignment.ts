import { isIp } from "../../base/address.ts";
import { matchesLabels } from "../../base/labels.ts";
import type { Query } from "../../engine/index.ts";
import type { LoadAssignmentInput } from "../../envoy/endpoint/load-assignment.ts";
import type { Endpoint } from "../../model/endpoint.ts";
import type { GenerateContext } from "../context.ts";
import { type AddressFamily, type AssignmentKey, type AssignmentPlan, type Place, topologyLabels } from "./assignment-key.ts";
import { canReach, inOwnNetwork, type NetworkedEndpoint, type NetworkGateways, throughGateways } from "./network-gateways.ts";
import { definePeerModes, type PeerModes, refusesMutualTls } from "./peer-modes.ts";
import { type PlacedEndpoint, rankLocalities, type WeighedEndpoint } from "./rank-localities.ts";

/** Chooses, ranks and weighs the endpoints of a cluster. */
export interface AssignmentSelection {
  readonly peerModes: Query<string, PeerModes>;
  /** Call inside a query: reads are recorded. `resolved`: addresses must be IP addresses, since nobody will look names up. */
  select(key: AssignmentKey, options: { readonly resolved: boolean }): LoadAssignmentInput;
}

export function defineAssignmentSelection(ctx: GenerateContext, networkGateways: Query<"", NetworkGateways>): AssignmentSelection {
  const peerModes = definePeerModes(ctx);
  const acrossNetworks = (endpoints: readonly NetworkedEndpoint[], place: Place): readonly PlacedEndpoint[] =>
    place.network === undefined ? endpoints : throughGateways(endpoints, networkGateways(""), place);
  return {
    peerModes,
    select({ plan, place }, { resolved }) {
      const chosen = ctx.registry
        .endpoints(plan.service, plan.port)
        .filter((endpoint) => isWanted(endpoint, plan, place) && (!resolved || endpoint.unixPath || isIp(endpoint.address)));
      const placed = ofOwnFamilies(chosen, place.family ?? "v4").map((endpoint) => placedEndpoint(endpoint, plan, peerModes));
      const reachable =
        plan.mutualTls === "only"
          ? inOwnNetwork(placed, place.network).filter(({ endpoint }) => endpoint.mutualTls)
          : acrossNetworks(placed, place);
      return { clusterName: plan.cluster, localities: rankLocalities(reachable, plan.locality, place) };
    },
  };
}

/** Of a service with endpoints of both families a client gets those it can reach; where it could reach none, all: there may be a way we do not see. */
function ofOwnFamilies(endpoints: readonly Endpoint[], family: AddressFamily): readonly Endpoint[] {
  if (family === "all") return endpoints;
  const reachable = endpoints.filter(({ address, unixPath }) => unixPath || !isIp(address) || canReach(family, address));
  return reachable.length === 0 ? endpoints : reachable;
}

function isWanted(endpoint: Endpoint, plan: AssignmentPlan, place: Place): boolean {
  // What is going away is not sent at all: it may finish what it has, and counts in nobody's share of healthy hosts.
  if (endpoint.health === "terminating" || endpoint.health === "draining") return false;
  if (endpoint.health === "unhealthy" && !plan.unhealthy) return false;
  if (plan.clusterLocal && endpoint.clusterId !== place.clusterId) return false;
  if (plan.nodeLocal && endpoint.nodeName !== place.nodeName) return false;
  return matchesLabels(plan.labels, endpoint.labels);
}

function placedEndpoint(endpoint: Endpoint, plan: AssignmentPlan, peerModes: (namespace: string) => PeerModes): NetworkedEndpoint {
  const takesTls = endpoint.tlsMode === "istio" && !refusesMutualTls(peerModes(endpoint.namespace), endpoint.labels, endpoint.port);
  const input: WeighedEndpoint = {
    address: endpoint.address,
    unixPath: endpoint.unixPath,
    port: endpoint.port,
    weight: Math.max(1, endpoint.weight),
    health: endpoint.health === "unhealthy" ? "unhealthy" : "healthy",
    mutualTls: takesTls && plan.mutualTls !== "hide",
    workload: workloadOf(endpoint),
  };
  const labels = plan.locality?.kind === "priority" ? topologyLabels(endpoint) : endpoint.labels;
  return { endpoint: input, locality: endpoint.locality, labels, network: endpoint.network };
}

/** Istio's compact description of a workload. Canonical name and revision default from the usual labels. */
function workloadOf({ workload, namespace, labels, clusterId }: Endpoint): string {
  const name = labels["service.istio.io/canonical-name"] ?? labels["app.kubernetes.io/name"] ?? labels.app ?? workload;
  const revision = labels["service.istio.io/canonical-revision"] ?? labels["app.kubernetes.io/version"] ?? labels.version ?? "";
  return [workload, namespace, name, revision, clusterId].join(";");
}
