import { type Cidr, cidrContains, parseCidr, parseIp } from "../base/address.ts";
import type { MeshNetworks } from "../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";

/** Which network an address belongs to, by MeshNetworks. */
export interface NetworkTable {
  /** Longest prefix first. */
  readonly ranges: readonly { readonly cidr: Cidr; readonly network: string }[];
  /** Network of everything this cluster's registry holds (`fromRegistry`), where one is named. */
  readonly ofCluster: string;
}

/** Reads MeshNetworks for one cluster. Of two networks that claim the same range or cluster, the first by name has it. */
export function networkTable(networks: MeshNetworks | undefined, clusterId: string): NetworkTable {
  const ranges: { cidr: Cidr; network: string }[] = [];
  let ofCluster = "";
  for (const [network, content] of Object.entries(networks?.networks ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))) {
    for (const { ne } of content.endpoints) {
      if (ne.case === "fromRegistry" && ne.value === clusterId && ofCluster === "") ofCluster = network;
      const cidr = ne.case === "fromCidr" ? parseCidr(ne.value) : undefined;
      if (cidr !== undefined) ranges.push({ cidr, network });
    }
  }
  return { ranges: ranges.sort((a, b) => b.cidr.prefix - a.cidr.prefix), ofCluster };
}

/** The network of an address that names none itself; empty where MeshNetworks says nothing of it. */
export function networkOfAddress(table: NetworkTable, address: string): string {
  if (table.ranges.length === 0) return table.ofCluster;
  const ip = parseIp(address);
  const range = ip === undefined ? undefined : table.ranges.find(({ cidr }) => cidrContains(cidr, ip));
  return range?.network ?? table.ofCluster;
}

/** The network of an address that a cluster itself lists. What is said of the whole cluster goes before ranges, as in Istio: those of others may overlap with it. */
export const networkInCluster = (table: NetworkTable, address: string): string => table.ofCluster || networkOfAddress(table, address);
