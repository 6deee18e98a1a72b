import { fromBinary } from "@bufbuild/protobuf";
import { ClusterSchema } from "../../src/gen/envoy/config/cluster/v3/cluster_pb.js";
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from "../../src/gen/envoy/config/endpoint/v3/endpoint_pb.js";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "../../src/wire/type-urls.ts";
import { type SubscriberOptions, subscribe } from "./xds-subscriber.ts";

/** A client that only listens: the endpoints of one cluster as they were told, one list after another. */
export function watchEndpoints(port: number, cluster: string, node = NODE): () => readonly (readonly string[])[] {
  const answers = subscribe({ port, variant: "delta", node, typeUrl: ENDPOINT_TYPE, names: [cluster] });
  return () =>
    answers.flatMap(({ resources, removed }) => [
      ...resources.map(({ value }) => addressesOf(fromBinary(ClusterLoadAssignmentSchema, value))),
      ...(removed.includes(cluster) ? [[]] : []),
    ]);
}

/** The same for the names of all clusters: what each answer added, and what it took away. */
export function watchClusters(port: number, node = NODE): { names(): readonly string[]; removed(): readonly string[] } {
  const answers = subscribe({ port, variant: "delta", node, typeUrl: CLUSTER_TYPE });
  return {
    names: () => answers.flatMap(({ resources }) => resources.map(({ value }) => fromBinary(ClusterSchema, value).name)),
    removed: () => answers.flatMap(({ removed }) => removed),
  };
}

const NODE: SubscriberOptions["node"] = { id: "sidecar~10.9.9.9~client.shop~shop.svc.cluster.local" };

/** `address:port`, sorted. */
export const addressesOf = ({ endpoints }: ClusterLoadAssignment): readonly string[] =>
  endpoints
    .flatMap(({ lbEndpoints }) => lbEndpoints)
    .flatMap(({ hostIdentifier }) => {
      const at = hostIdentifier.case === "endpoint" ? hostIdentifier.value.address?.address : undefined;
      if (at?.case !== "socketAddress") return [];
      return [`${at.value.address}:${at.value.portSpecifier.value}`];
    })
    .sort();
