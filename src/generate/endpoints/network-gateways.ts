import { isIp } from "../../base/address.ts";
import type { MeshNetworks } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import type { AddressFamily, Place } from "./assignment-key.ts";
import type { PlacedEndpoint, WeighedEndpoint } from "./rank-localities.ts";

/** Port of a gateway that forwards by SNI, where none is given. */
export const DEFAULT_GATEWAY_PORT = 15_443;

export interface NetworkGateway {
  readonly address: string;
  readonly port: number;
}

/** An endpoint with the network it is in; empty = not known, hence reachable. */
export interface NetworkedEndpoint extends PlacedEndpoint {
  readonly network: string;
}

export type NetworkGateways = ReadonlyMap<string, readonly NetworkGateway[]>;

/** A Service that stands for a gateway: where it is reached from outside, and the network its labels say it leads into. */
export interface GatewayService {
  readonly host: string;
  readonly addresses: readonly string[];
  readonly network: string | undefined;
  /** Port on which it forwards by SNI. */
  readonly port: number;
  /** Ports at its addresses, by the port of the Service, where those differ. */
  readonly nodePorts?: Readonly<Record<number, number>>;
}

/**
 * Gateways of each network: those the mesh's networks name by address or by Service, and Services that say by label which network they lead
 * into. An address may be a host name.
 */
export function gatewaysOf(networks: MeshNetworks | undefined, services: readonly GatewayService[]): NetworkGateways {
  const found = Object.entries(networks?.networks ?? {}).flatMap(([network, { gateways }]) =>
    gateways.flatMap(({ gw, port }) => {
      const asked = port || DEFAULT_GATEWAY_PORT;
      if (gw.case === "address") return [{ network, address: gw.value, port: asked }];
      return services.filter(({ host }) => host === gw.value).flatMap((service) => doorsOf(service, network, asked));
    }),
  );
  const labelled = services.flatMap((service) => (service.network === undefined ? [] : doorsOf(service, service.network, service.port)));
  return byNetwork([...found, ...labelled]);
}

const doorsOf = (
  { addresses, nodePorts }: GatewayService,
  network: string,
  port: number,
): readonly (NetworkGateway & { readonly network: string })[] =>
  addresses.map((address) => ({ network, address, port: nodePorts?.[port] ?? port }));

/** The host names among the addresses of gateways. */
export const gatewayNames = (gateways: NetworkGateways): readonly string[] =>
  [...new Set([...gateways.values()].flat().map(({ address }) => address))].filter((address) => !isIp(address)).sort();

/** Gateways with addresses in place of host names; a name that has none yet is no way into its network. */
export function resolvedGateways(gateways: NetworkGateways, addressesOf: (name: string) => readonly string[]): NetworkGateways {
  const all = [...gateways].flatMap(([network, list]) =>
    list.flatMap(({ address, port }) =>
      (isIp(address) ? [address] : addressesOf(address)).map((found) => ({ network, address: found, port })),
    ),
  );
  return byNetwork(all);
}

function byNetwork(gateways: readonly (NetworkGateway & { readonly network: string })[]): NetworkGateways {
  const distinct = new Map(gateways.map((gateway) => [`${gateway.network} ${gateway.address}:${gateway.port}`, gateway]));
  const sorted = [...distinct].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, gateway]) => gateway);
  const groups = Map.groupBy(sorted, ({ network }) => network);
  return new Map([...groups].map(([network, list]) => [network, list.map(({ address, port }) => ({ address, port }))]));
}

/** Endpoints of the networks that a client wants to see (node metadata REQUESTED_NETWORK_VIEW); it sees all where it does not say. */
export const inView = (endpoints: readonly NetworkedEndpoint[], place: Place["network"]): readonly NetworkedEndpoint[] =>
  place === undefined || place.view.length === 0
    ? endpoints
    : endpoints.filter(({ network }) => network === "" || place.view.includes(network));

/** Endpoints a gateway may forward to: those of its own network, since it is the way in, and of networks that have no gateway of theirs. */
export const withoutDetours = (
  endpoints: readonly NetworkedEndpoint[],
  place: Place["network"],
  gateways: NetworkGateways,
): readonly NetworkedEndpoint[] =>
  place === undefined || place.own === ""
    ? endpoints
    : endpoints.filter(({ network }) => network === "" || network === place.own || !gateways.has(network));

/** How often weights are taken so that each network's can be divided among its gateways. */
export const weightScale = (gateways: NetworkGateways): number => leastCommonMultiple([...gateways.values()].map(({ length }) => length));

/**
 * Endpoints in other networks are reached through the gateways there: a gateway stands for all of them with the sum of their weights. It
 * forwards by SNI, so endpoints that do not take mutual TLS cannot be reached and are left out (Istio's "Multi-network" deployment model).
 */
export function throughGateways(
  endpoints: readonly NetworkedEndpoint[],
  gateways: NetworkGateways,
  { network: place, family: known }: Pick<Place, "network" | "family">,
): readonly PlacedEndpoint[] {
  if (place === undefined) return endpoints;
  const family = known ?? "v4";
  const scale = weightScale(gateways);
  const result = new Map<string, PlacedEndpoint>();
  for (const placed of endpoints) {
    const behind = placed.network === "" || placed.network === place.own ? undefined : gateways.get(placed.network);
    if (behind === undefined) {
      result.set(`#${result.size}`, { ...placed, endpoint: { ...placed.endpoint, weight: placed.endpoint.weight * scale } });
      continue;
    }
    const reachable = behind.filter(({ address }) => canReach(family, address));
    if (placed.endpoint.mutualTls)
      for (const gateway of reachable) add(result, placed, gatewayEndpoint(gateway, (placed.endpoint.weight * scale) / reachable.length));
  }
  return [...result.values()];
}

/** Whether a client with addresses of some families can connect to an address. What a host name resolves to is seen when it is. */
export const canReach = (family: AddressFamily, address: string): boolean =>
  family === "all" || !isIp(address) || (family === "v6") === address.includes(":");

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
