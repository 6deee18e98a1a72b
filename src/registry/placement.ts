import { canonicalAddress } from "../base/address.ts";
import type { Labels } from "../base/labels.ts";
import { type Locality, NO_LOCALITY, parseLocality } from "../model/locality.ts";
import { type NetworkTable, networkOfAddress } from "./networks.ts";

/** What says where workloads run, beside the workloads themselves. */
export interface Placement {
  readonly networks: NetworkTable;
}

const LOCALITY_LABELS = ["topology.istio.io/locality", "istio-locality"] as const;

/** Locality, network and the one spelling of the address of a workload that says some of it itself. */
export function placeWorkload(
  workload: { readonly address: string; readonly locality: string; readonly network: string; readonly labels: Labels },
  placement: Placement,
): { readonly address: string; readonly locality: Locality; readonly network: string } {
  const own = workload.network !== "" ? workload.network : (workload.labels["topology.istio.io/network"] ?? "");
  return {
    address: canonicalAddress(workload.address),
    locality: workload.locality === "" ? localityOfLabels(workload.labels) : parseLocality(workload.locality),
    network: own !== "" ? own : networkOfAddress(placement.networks, workload.address),
  };
}

/** The locality a label gives; labels cannot hold slashes, so dots separate its parts. */
export function localityOfLabels(labels: Labels): Locality {
  for (const name of LOCALITY_LABELS) {
    const text = labels[name];
    if (text !== undefined && text !== "") return parseLocality(text.includes("/") ? text : text.replaceAll(".", "/"));
  }
  return NO_LOCALITY;
}

/** The locality that the well-known labels of a Node give. */
export function localityOfNode(labels: Labels): Locality {
  const region = labels["topology.kubernetes.io/region"] ?? labels["failure-domain.beta.kubernetes.io/region"] ?? "";
  const zone = labels["topology.kubernetes.io/zone"] ?? labels["failure-domain.beta.kubernetes.io/zone"] ?? "";
  const subzone = labels["topology.istio.io/subzone"] ?? "";
  return region === "" && zone === "" && subzone === "" ? NO_LOCALITY : { region, zone, subzone };
}
