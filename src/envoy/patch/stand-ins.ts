import { TrafficDirection } from "../../gen/envoy/config/core/v3/base_pb.js";
import type { Listener } from "../../gen/envoy/config/listener/v3/listener_pb.js";

/** A filter that only Istio's Envoy has, and the neighbour it has in Istio's chains. */
interface StandIn {
  readonly name: string;
  /** The filter it stands behind; "first" and "last" are the ends of the list, the last place being before the filter that ends the chain. */
  readonly behind: string;
  /** Chains it stands in. */
  readonly direction?: "inbound" | "outbound";
}

/** HTTP filters of Istio's connection managers that ours do not have. */
export const HTTP_STAND_INS: readonly StandIn[] = [
  { name: "istio.metadata_exchange", behind: "first" },
  { name: "istio.alpn", behind: "envoy.filters.http.grpc_stats", direction: "outbound" },
  { name: "istio.stats", behind: "envoy.filters.http.cors" },
];

/** The same of filter chains. */
export const NETWORK_STAND_INS: readonly StandIn[] = [
  { name: "istio.metadata_exchange", behind: "first", direction: "inbound" },
  { name: "istio.stats", behind: "last" },
];

/** A list of filters that patches are about to change. */
export interface Neighbours<T> {
  readonly list: T[];
  /** Names that the patches look for. */
  readonly named: ReadonlySet<string>;
  readonly listener: Pick<Listener, "trafficDirection">;
  /** Where "last" is. */
  readonly end: () => number;
  readonly make: (name: string) => T;
}

/**
 * Lets patches name filters of Istio's as neighbours: while `patch` runs, those that are named stand where Istio has them, and are gone afterwards.
 * So a filter that was written to stand before `istio.stats` stands in the same place here.
 */
export function amongStandIns<T extends { readonly name: string }>(
  standIns: readonly StandIn[],
  { list, named, listener, end, make }: Neighbours<T>,
  patch: () => void,
): void {
  const placed = new Set<T>();
  const inbound = listener.trafficDirection === TrafficDirection.INBOUND;
  for (const { name, behind, direction } of standIns) {
    if (!named.has(name) || list.some((filter) => filter.name === name)) continue;
    if (direction !== undefined && (direction === "inbound") !== inbound) continue;
    const neighbour = list.findIndex((filter) => filter.name === behind);
    if (neighbour < 0 && behind !== "first" && behind !== "last") continue;
    const filter = make(name);
    placed.add(filter);
    list.splice(behind === "last" ? end() : neighbour + 1, 0, filter);
  }
  patch();
  for (const filter of placed) {
    const index = list.indexOf(filter);
    if (index >= 0) list.splice(index, 1);
  }
}
