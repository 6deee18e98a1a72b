import { isIp } from "../../base/address.ts";
import type { MeshNetworks } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import type { Place } from "./assignment-key.ts";
import type { PlacedEndpoint, WeighedEndpoint } from "./rank-localities.ts";

/** Port of a gateway that forwards by SNI, where none is given. */
const DEFAULT_GATEWAY_PORT = 15_443;

export interface NetworkGateway {
  readonly address: string;
  readonly port: number;
}

/** An endpoint with the network it is in; empty = not known, hence reachable. */
export interface NetworkedEndpoint extends PlacedEndpoint {
  readonly network: string;
}

/** Gateways of each network that have an address proxies can connect to. */
export function gatewaysOf(networks: MeshNetworks | undefined): ReadonlyMap<string, readonly NetworkGateway[]> {
  const entries = Object.entries(networks?.networks ?? {}).map(([network, { gateways }]) => {
    const reachable = gateways.flatMap(({ gw, port }) =>
      gw.case === "address" && isIp(gw.value) ? [{ address: gw.value, port: port || DEFAULT_GATEWAY_PORT }] : [],
    );
    return [network, reachable] as const;
  });
  return new Map(entries.filter(([, gateways]) => gateways.length > 0));
}

/** Endpoints a gateway may forward to: those of its own network, since it is the way in. */
export const inOwnNetwork = (endpoints: readonly NetworkedEndpoint[], place: Place["network"]): readonly NetworkedEndpoint[] =>
  place === undefined || place.own === "" ? endpoints : endpoints.filter(({ network }) => network === "" || network === place.own);

/**
 * Endpoints in other networks are reached through the gateways there: a gateway stands for all of them with the sum of their weights. It
 * forwards by SNI, so endpoints that do not take mutual TLS cannot be reached and are left out (Istio's "Multi-network" deployment model).
 */
export function throughGateways(
  endpoints: readonly NetworkedEndpoint[],
  gateways: ReadonlyMap<string, readonly NetworkGateway[]>,
  place: Place["network"],
): readonly PlacedEndpoint[] {
  if (place === undefined) return endpoints;
  const visible = place.view.length === 0 ? endpoints : endpoints.filter(({ network }) => network === "" || place.view.includes(network));
  const scale = leastCommonMultiple([...gateways.values()].map(({ length }) => length));
  const result = new Map<string, PlacedEndpoint>();
  for (const placed of visible) {
    const behind = placed.network === "" || place.own === "" || placed.network === place.own ? undefined : gateways.get(placed.network);
    if (behind === undefined) add(result, placed, { ...placed.endpoint, weight: placed.endpoint.weight * scale });
    else if (placed.endpoint.mutualTls)
      for (const gateway of behind) add(result, placed, gatewayEndpoint(gateway, (placed.endpoint.weight * scale) / behind.length));
  }
  return [...result.values()];
}

function gatewayEndpoint({ address, port }: NetworkGateway, weight: number): WeighedEndpoint {
  return { address, port, unixPath: false, weight, health: "healthy", mutualTls: true, workload: "" };
}

function add(result: Map<string, PlacedEndpoint>, { locality, labels }: PlacedEndpoint, endpoint: WeighedEndpoint): void {
  const id = `${endpoint.address}:${endpoint.port} ${locality.region}/${locality.zone}/${locality.subzone}`;
  const seen = result.get(id);
  result.set(id, {
    locality,
    labels,
    endpoint: seen === undefined ? endpoint : { ...endpoint, weight: seen.endpoint.weight + endpoint.weight },
  });
}

function leastCommonMultiple(numbers: readonly number[]): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  return numbers.reduce((a, b) => (a * b) / divisor(a, b), 1);
}
