import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type Cluster,
  ClusterSchema,
  Cluster_DiscoveryType as Discovery,
  Cluster_LbPolicy as LbPolicy,
} from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { ApiVersion } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { clientTls } from "./provided-tls.ts";

/** All that decides a cluster of a gRPC client: the few things gRPC knows of clusters. */
export interface GrpcClusterInput {
  readonly name: string;
  /** Endpoints are asked for, or there is one name that the client looks up. */
  readonly discovery: "eds" | { readonly host: string; readonly port: number };
  /** Calls go by their hash; else from one endpoint to the next, which is all other algorithms that every client has. */
  readonly ringHash?: { readonly minimumRingSize: number | undefined };
  /** Calls in flight at once (gRFC A32); absent = gRPC's own limit. */
  readonly maxRequests?: number;
  /** Mutual TLS with the certificates of the mesh, and the names the servers may have. Absent = what the application's credentials say. */
  readonly mutualTls?: { readonly names: readonly string[] };
}

/** Builds a cluster as gRPC wants it. Anything it does not know would make a client refuse the response, so there is nothing else in it. */
export function buildGrpcCluster(input: GrpcClusterInput): Cluster {
  const { name, discovery, ringHash, maxRequests, mutualTls } = input;
  return create(ClusterSchema, {
    name,
    ...(discovery === "eds" ? edsFields(name) : dnsFields(name, discovery)),
    ...(ringHash !== undefined && hashFields(ringHash.minimumRingSize)),
    ...(maxRequests !== undefined && { circuitBreakers: { thresholds: [{ maxRequests }] } }),
    ...(mutualTls !== undefined && { transportSocket: clientTls(mutualTls.names) }),
  });
}

type ClusterInit = MessageInitShape<typeof ClusterSchema>;

const edsFields = (serviceName: string): Pick<ClusterInit, "clusterDiscoveryType" | "edsClusterConfig"> => ({
  clusterDiscoveryType: { case: "type", value: Discovery.EDS },
  edsClusterConfig: {
    serviceName,
    edsConfig: { configSourceSpecifier: { case: "ads", value: {} }, resourceApiVersion: ApiVersion.V3 },
  },
});

/** gRFC A37: exactly one endpoint, by name. */
const dnsFields = (
  clusterName: string,
  { host, port }: { readonly host: string; readonly port: number },
): Pick<ClusterInit, "clusterDiscoveryType" | "loadAssignment"> => ({
  clusterDiscoveryType: { case: "type", value: Discovery.LOGICAL_DNS },
  loadAssignment: {
    clusterName,
    endpoints: [
      {
        lbEndpoints: [
          {
            hostIdentifier: {
              case: "endpoint",
              value: {
                address: {
                  address: { case: "socketAddress", value: { address: host, portSpecifier: { case: "portValue", value: port } } },
                },
              },
            },
          },
        ],
      },
    ],
  },
});

const hashFields = (minimum: number | undefined): Pick<ClusterInit, "lbPolicy" | "lbConfig"> => ({
  lbPolicy: LbPolicy.RING_HASH,
  ...(minimum !== undefined && { lbConfig: { case: "ringHashLbConfig", value: { minimumRingSize: BigInt(minimum) } } }),
});
