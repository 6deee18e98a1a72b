export { buildCluster } from "./build-cluster.ts";
export type * from "./cluster-input.ts";
export {
  ANY_NAME_CLUSTER,
  BLACK_HOLE_CLUSTER,
  INBOUND_PASSTHROUGH_CLUSTER,
  inboundClusterName,
  type OutboundClusterName,
  outboundClusterName,
  PASSTHROUGH_CLUSTER,
  type ParsedClusterName,
  parseOutboundClusterName,
  SELF_DISCOVERY_CLUSTER,
  sniClusterName,
} from "./cluster-name.ts";
