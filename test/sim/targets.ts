import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { type Cluster, Cluster_DiscoveryType } from "../../src/gen/envoy/config/cluster/v3/cluster_pb.js";
import type { TransportSocket } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { HealthStatus } from "../../src/gen/envoy/config/core/v3/health_check_pb.js";
import type { LbEndpoint } from "../../src/gen/envoy/config/endpoint/v3/endpoint_components_pb.js";
import type { ClusterLoadAssignment } from "../../src/gen/envoy/config/endpoint/v3/endpoint_pb.js";
import { UpstreamTlsContextSchema } from "../../src/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import type { Call } from "./simulate.ts";

/** An endpoint a call may reach, and how it is spoken to. */
export interface Target {
  readonly address: string;
  readonly tls: "plaintext" | "tls" | "mutual";
}

/** Endpoints that a cluster would use while all are well: the first priority that has a healthy one. Sends nowhere where nobody is. */
export function targetsOf(cluster: Cluster, assignments: ReadonlyMap<string, ClusterLoadAssignment>, call: Call): readonly Target[] {
  const type = cluster.clusterDiscoveryType.case === "type" ? cluster.clusterDiscoveryType.value : undefined;
  if (type === Cluster_DiscoveryType.ORIGINAL_DST)
    return [{ address: `${call.address}:${call.port}`, tls: tlsOf(cluster.transportSocket) }];
  const assignment =
    type === Cluster_DiscoveryType.EDS ? assignments.get(cluster.edsClusterConfig?.serviceName || cluster.name) : cluster.loadAssignment;
  const healthy = (assignment?.endpoints ?? [])
    .map(({ priority, lbEndpoints }) => ({ priority, members: lbEndpoints.filter(isHealthy) }))
    .filter(({ members }) => members.length > 0);
  const first = Math.min(...healthy.map(({ priority }) => priority));
  return healthy
    .filter(({ priority }) => priority === first)
    .flatMap(({ members }) => members.map((member) => ({ address: addressOf(member), tls: tlsOf(socketFor(cluster, member)) })));
}

const isHealthy = ({ healthStatus }: LbEndpoint): boolean => healthStatus === HealthStatus.UNKNOWN || healthStatus === HealthStatus.HEALTHY;

function addressOf({ hostIdentifier }: LbEndpoint): string {
  const address = hostIdentifier.case === "endpoint" ? hostIdentifier.value.address?.address : undefined;
  if (address?.case === "pipe") return address.value.path;
  return address?.case === "socketAddress" ? `${address.value.address}:${address.value.portSpecifier.value}` : "";
}

/** The first transport socket whose match is contained in the endpoint's metadata, else the cluster's own. */
function socketFor(cluster: Cluster, { metadata }: LbEndpoint): TransportSocket | undefined {
  const facts = metadata?.filterMetadata["envoy.transport_socket_match"] ?? {};
  const found = cluster.transportSocketMatches.find(({ match = {} }) =>
    Object.entries(match).every(([key, value]) => facts[key] === value),
  );
  return found?.transportSocket ?? cluster.transportSocket;
}

function tlsOf(socket: TransportSocket | undefined): Target["tls"] {
  const context = socket?.configType.case === "typedConfig" ? anyUnpack(socket.configType.value, UpstreamTlsContextSchema) : undefined;
  if (context === undefined) return "plaintext";
  const { tlsCertificates = [], tlsCertificateSdsSecretConfigs = [] } = context.commonTlsContext ?? {};
  return tlsCertificates.length + tlsCertificateSdsSecretConfigs.length > 0 ? "mutual" : "tls";
}
