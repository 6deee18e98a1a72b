import { canonicalAddress, isIp } from "../base/address.ts";
import { type Labels, labelPairs } from "../base/labels.ts";
import type { ServiceEntry } from "../gen/istio/networking/v1alpha3/service_entry_pb.js";
import type { WorkloadEntry } from "../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import type { EndpointSlice } from "./kinds/endpoint-slice/endpoint-slice.ts";
import type { Endpoints } from "./kinds/endpoints/endpoints.ts";
import type { Pod } from "./kinds/pod/pod.ts";
import type { ServiceSpec } from "./kinds/service/service.ts";
import { type ConfigObject, inCluster } from "./object.ts";

/**
 * Ways into the table of objects beside the key. A query that looks something up through one of them reads just the rows concerned, so a
 * change elsewhere does not re-run it.
 */
export const OBJECT_INDEXES = {
  /** `VirtualService` */
  kind: (object: ConfigObject): readonly string[] => [object.kind],
  /** `VirtualService/shop` */
  kindNamespace: (object: ConfigObject): readonly string[] => [`${object.kind}/${object.namespace}`],
  /** ServiceEntries by each host they declare: `api.example.com` */
  host: (object: ConfigObject): readonly string[] => (object.kind === "ServiceEntry" ? (object.spec as ServiceEntry).hosts : NONE),
  /** What names the IP address of a workload, with its namespace: `shop/10.1.2.3`, and `shop/10.1.2.3@` for what is in other clusters */
  address: (object: ConfigObject): readonly string[] => {
    // Once for all of them: a key holds the texts that it was put together from.
    const [head, tail] = [`${object.namespace}/`, elsewhere(object)];
    return ipsOf(object).map((address) => `${head}${address}${tail}`);
  },
  /** Other clusters, by the namespaces they have: `west` */
  remoteCluster: (object: ConfigObject): readonly string[] =>
    object.kind === "Namespace" && object.cluster !== undefined ? [object.cluster] : NONE,
  /** Objects of other clusters by the key of the one of that name here: `Service/shop/cart` */
  counterpart: (object: ConfigObject): readonly string[] =>
    object.cluster === undefined ? NONE : [`${object.kind}/${object.namespace}/${object.name}`],
  /** The workload that has an IP address for itself, in whatever namespace: `10.1.2.3` */
  ownAddress: (object: ConfigObject): readonly string[] => (isOwnWorkload(object) ? ipsOf(object) : NONE),
  /**
   * What can be selected, by each of its labels: `Pod/shop/app=web`; in another cluster `Pod/shop/app=web@west`, and `Pod/shop/app=web@` whichever that is.
   * EndpointSlices by that of their Service only.
   */
  label: (object: ConfigObject): readonly string[] => {
    const here = selectableLabels(object).map((pair) => `${object.kind}/${object.namespace}/${pair}`);
    const { cluster } = object;
    return cluster === undefined ? here : here.flatMap((one) => [`${one}${inCluster(cluster)}`, `${one}@`]);
  },
  /** What selects workloads, by the first label of its selector, or `*` where the selector is empty: `Service/shop/app=web`, and `…@west` in another cluster */
  selector: (object: ConfigObject): readonly string[] => {
    const selector = selectorOf(object);
    const { kind, namespace, cluster = "" } = object;
    return selector === undefined ? NONE : [`${kind}/${namespace}/${labelPairs(selector)[0] ?? "*"}${inCluster(cluster)}`];
  },
} as const;

/** The same addresses may be in use in several clusters: what is in another one does not pass for what is here. */
const elsewhere = ({ cluster }: ConfigObject): string => (cluster === undefined ? "" : "@");

const isOwnWorkload = ({ kind, cluster }: ConfigObject): boolean => cluster === undefined && (kind === "Pod" || kind === "WorkloadEntry");

/** Of most rows most indexes know nothing. */
const NONE: readonly never[] = Object.freeze([]);

const ipsOf = (object: ConfigObject): readonly string[] => {
  const addresses = addressesOf(object);
  return addresses.length === 0 ? NONE : addresses.filter(isIp).map(canonicalAddress);
};

function addressesOf(object: ConfigObject): readonly string[] {
  switch (object.kind) {
    case "ServiceEntry":
      return (object.spec as ServiceEntry).endpoints.map(({ address }) => address);
    case "WorkloadEntry":
      return [(object.spec as WorkloadEntry).address];
    case "Pod":
      return podAddresses(object.spec as Pod);
    case "EndpointSlice":
      return (object.spec as EndpointSlice).endpoints.flatMap(({ addresses }) => addresses);
    case "Endpoints":
      return (object.spec as Endpoints).subsets.flatMap((subset) => [...subset.addresses, ...subset.notReadyAddresses].map(({ ip }) => ip));
    default:
      return NONE;
  }
}

/** Pods on the host's network share the node's address with others: it does not tell which pod is meant. */
function podAddresses({ spec, status }: Pod): readonly string[] {
  if (spec.hostNetwork === true) return [];
  const ips = status.podIPs.map(({ ip }) => ip);
  return status.podIP === undefined || ips.includes(status.podIP) ? ips : [status.podIP, ...ips];
}

/** A WorkloadEntry of a WorkloadGroup may get labels from it: it is listed as `@grouped` too, for a closer look. */
function selectableLabels(object: ConfigObject): readonly string[] {
  switch (object.kind) {
    case "Pod":
      return labelPairs(object.labels);
    case "WorkloadEntry": {
      const own = labelPairs({ ...(object.spec as WorkloadEntry).labels, ...object.labels });
      return object.annotations["istio.io/autoRegistrationGroup"] === undefined ? own : [...own, "@grouped"];
    }
    case "EndpointSlice":
      return labelPairs(object.labels).filter((pair) => pair.startsWith("kubernetes.io/service-name="));
    default:
      return NONE;
  }
}

function selectorOf(object: ConfigObject): Labels | undefined {
  if (object.kind === "ServiceEntry") return (object.spec as ServiceEntry).workloadSelector?.labels;
  const selector = object.kind === "Service" ? (object.spec as ServiceSpec).selector : undefined;
  return selector === undefined || Object.keys(selector).length === 0 ? undefined : selector;
}
