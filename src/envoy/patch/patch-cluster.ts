import type { Registry } from "@bufbuild/protobuf";
import { type Cluster, ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import type { TransportSocket } from "../../gen/envoy/config/core/v3/base_pb.js";
import { parseOutboundClusterName } from "../cluster/cluster-name.ts";
import { mergeInto } from "./merge.ts";
import { mergeSocket } from "./merge-filter.ts";
import { type ClusterMatch, contentFor, listMode, merges, type Patch, PatchRefusal } from "./patch.ts";
import type { PatchTrace } from "./trace.ts";

/** Whether a patch speaks of a cluster. `hosts` are the services behind an inbound cluster, whose name does not say them. */
export function matchesCluster(match: ClusterMatch | undefined, name: string, hosts: () => readonly string[]): boolean {
  if (match === undefined) return true;
  if (match.name !== undefined) return match.name === name;
  const { port, subset, host } = clusterParts(name);
  if (match.subset !== undefined && match.subset !== subset) return false;
  if (match.port !== undefined && match.port !== port) return false;
  return match.service === undefined || match.service === host || (name.startsWith("inbound|") && hosts().includes(match.service));
}

function clusterParts(name: string): { readonly port: number; readonly subset: string; readonly host: string } {
  const outbound = parseOutboundClusterName(name);
  if (outbound !== undefined) return outbound;
  const [direction, port = "", subset = "", host = ""] = name.split("|");
  return direction === "inbound" ? { port: Number(port), subset, host } : { port: 0, subset: "", host: "" };
}

/** Services behind a cluster, from the metadata Istio's telemetry reads. */
export function servicesOf({ metadata }: Cluster): readonly string[] {
  const services = metadata?.filterMetadata.istio?.services;
  if (!Array.isArray(services)) return [];
  return services.flatMap((one) =>
    typeof one === "object" && one !== null && "host" in one && typeof one.host === "string" ? [one.host] : [],
  );
}

/** Applies patches that are known to speak of this cluster; it is modified. Undefined when one removes it. */
export function patchCluster(
  cluster: Cluster,
  { patches, registry, trace }: { readonly patches: readonly Patch[]; readonly registry: Registry; readonly trace: PatchTrace },
): Cluster | undefined {
  for (const patch of patches) {
    trace.match(patch);
    if (patch.operation === "REMOVE") {
      trace.apply(patch, () => true);
      return undefined;
    }
    if (merges(patch)) trace.apply(patch, () => mergeCluster(cluster, patch, registry));
  }
  return cluster;
}

/** A patch with a transport socket changes nothing else, as in Istio. */
function mergeCluster(cluster: Cluster, patch: Patch, registry: Registry): boolean {
  const value = contentFor(patch, ClusterSchema);
  if (value.transportSocket === undefined) mergeInto({ schema: ClusterSchema, lists: listMode(patch) }, cluster, value);
  else mergeClusterSocket(cluster, value.transportSocket, registry);
  return true;
}

function mergeClusterSocket(cluster: Cluster, socket: TransportSocket, registry: Registry): void {
  const choices = cluster.transportSocketMatches.flatMap(({ transportSocket }) => transportSocket ?? []);
  const target = choices.length === 0 ? cluster.transportSocket : choices.find(({ name }) => name === socket.name);
  if (choices.length > 0 && target === undefined)
    throw new PatchRefusal(
      `the cluster chooses its transport socket by endpoint, and none of those is named ${JSON.stringify(socket.name)}`,
    );
  if (!mergeSocket(target, socket, registry)) cluster.transportSocket = socket;
}
