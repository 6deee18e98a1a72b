import type { Pod } from "../config/kinds/pod/pod.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import type { Health } from "../model/endpoint.ts";
import { type Locality, NO_LOCALITY } from "../model/locality.ts";
import type { RawMember } from "./member.ts";
import { networkInCluster } from "./networks.ts";
import { type Placement, placeWorkload } from "./placement.ts";

/** What a pod takes from around it. */
export interface PodSurroundings extends Placement {
  /** Network of the cluster's pods, where the system namespace names one. */
  readonly clusterNetwork: string;
  readonly localityOfNode: (nodeName: string) => Locality;
}

/** A Pod as a member at its primary address; undefined while it has none, and once it has ended. */
export function podMember(object: ConfigObject<Pod>, around: PodSurroundings): RawMember | undefined {
  const { spec, status } = object.spec;
  const address = status.podIP ?? status.podIPs[0]?.ip ?? "";
  if (address === "" || status.phase === "Succeeded" || status.phase === "Failed") return undefined;
  const nodeName = spec.nodeName ?? "";
  const place = placeWorkload({ address, locality: "", network: "", labels: object.labels }, around);
  const network = object.labels["topology.istio.io/network"] ?? (around.clusterNetwork || networkInCluster(around.networks, place.address));
  return {
    origin: "pod",
    ...place,
    network,
    locality: place.locality !== NO_LOCALITY || nodeName === "" ? place.locality : around.localityOfNode(nodeName),
    ports: containerPorts(object.spec),
    labels: object.labels,
    namespace: object.namespace,
    workload: workloadName(object),
    serviceAccount: spec.serviceAccountName ?? "default",
    nodeName,
    hostname: spec.hostname ?? "",
    subdomain: spec.subdomain ?? "",
    weight: 1,
    health: readiness(object.spec),
    objectKey: objectKey(object),
  };
}

/** A pod that says nothing about readiness (written by hand, say) counts as ready; one that is being deleted does not. */
function readiness(pod: Pod): Health {
  if (pod.deletionTimestamp !== undefined) return "terminating";
  const ready = pod.status.conditions.find(({ type }) => type === "Ready");
  return ready === undefined || ready.status === "True" ? "healthy" : "unhealthy";
}

/** The first port of a name has it, as for Kubernetes. */
function containerPorts(pod: Pod): Readonly<Record<string, number>> {
  const ports: Record<string, number> = {};
  for (const container of pod.spec.containers) {
    for (const { name, containerPort, protocol = "TCP" } of container.ports) {
      if (name !== undefined && protocol === "TCP") ports[name] ??= containerPort;
    }
  }
  return ports;
}

/**
 * Name of what the pod is one of: the Deployment (`web` of `web-5d4f8c-x2x7k`, known by the hash in its labels), the StatefulSet
 * (`db` of `db-0`), or the pod itself. A label may say it outright.
 */
function workloadName({ name, labels }: ConfigObject<Pod>): string {
  const told = labels["service.istio.io/workload-name"];
  if (told !== undefined && told !== "") return told;
  const hash = labels["pod-template-hash"];
  const end = hash === undefined || hash === "" ? -1 : name.lastIndexOf(`-${hash}-`);
  if (end > 0) return name.slice(0, end);
  return labels["statefulset.kubernetes.io/pod-name"] === name ? name.replace(/-\d+$/, "") : name;
}
