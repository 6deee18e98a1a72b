import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { AddressSchema } from "../../gen/envoy/config/core/v3/address_pb.js";
import { HealthStatus } from "../../gen/envoy/config/core/v3/health_check_pb.js";
import type { LbEndpointSchema } from "../../gen/envoy/config/endpoint/v3/endpoint_components_pb.js";
import type { ClusterLoadAssignmentSchema } from "../../gen/envoy/config/endpoint/v3/endpoint_pb.js";
import type { Locality } from "../../model/locality.ts";

/** The endpoints of one cluster, grouped as they are sent. */
export interface LoadAssignmentInput {
  readonly clusterName: string;
  readonly localities: readonly LocalityInput[];
}

/** Endpoints of one locality that share a priority. */
export interface LocalityInput {
  readonly locality: Locality;
  /** 0 is tried first. Priorities of an assignment have no gaps. */
  readonly priority: number;
  /** undefined = not weighed against others. */
  readonly weight: number | undefined;
  readonly endpoints: readonly EndpointInput[];
}

export interface EndpointInput {
  /** IP address or host name, or the path of a Unix socket. */
  readonly address: string;
  readonly unixPath: boolean;
  readonly port: number;
  /** Further addresses of the same workload: Envoy connects to whichever answers first, and goes on counting one host. */
  readonly others?: readonly string[];
  readonly weight: number | undefined;
  /** `draining`: takes what belongs to it by a session, and nothing new. */
  readonly health: "healthy" | "unhealthy" | "draining";
  /** The workload takes mutual TLS: clusters that choose by endpoint will use it. */
  readonly mutualTls: boolean;
  /** `workload;namespace;canonical name;canonical revision;cluster`, for access logs and metrics. Empty = not known. */
  readonly workload: string;
}

/** Builds a load assignment. Pure: equal inputs give equal bytes. */
export function buildLoadAssignment(input: LoadAssignmentInput): MessageInitShape<typeof ClusterLoadAssignmentSchema> {
  return {
    clusterName: input.clusterName,
    endpoints: input.localities.map(({ locality, priority, weight, endpoints }) => ({
      locality: { region: locality.region, zone: locality.zone, subZone: locality.subzone },
      priority,
      loadBalancingWeight: weight,
      lbEndpoints: endpoints.map(lbEndpoint),
    })),
  };
}

function lbEndpoint(input: EndpointInput): MessageInitShape<typeof LbEndpointSchema> {
  const filterMetadata: Record<string, JsonObject> = {};
  if (input.mutualTls) Object.assign(filterMetadata, MUTUAL_TLS);
  if (input.workload !== "") filterMetadata.istio = { workload: input.workload };
  return {
    hostIdentifier: {
      case: "endpoint",
      value: {
        address: addressOf(input),
        ...(input.others !== undefined && {
          additionalAddresses: input.others.map((address) => ({ address: addressOf({ ...input, address }) })),
        }),
      },
    },
    loadBalancingWeight: input.weight,
    ...(Object.keys(filterMetadata).length > 0 && { metadata: { filterMetadata } }),
    ...(input.health !== "healthy" && { healthStatus: HEALTH_STATUS[input.health] }),
  };
}

/** Metadata by which clusters choose mutual TLS for an endpoint. */
export const MUTUAL_TLS = { "envoy.transport_socket_match": { tlsMode: "istio" } };

export const HEALTH_STATUS = { unhealthy: HealthStatus.UNHEALTHY, draining: HealthStatus.DRAINING } as const;

function addressOf({ address, unixPath, port }: EndpointInput): MessageInitShape<typeof AddressSchema> {
  if (unixPath) return { address: { case: "pipe", value: { path: address } } };
  return { address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } } };
}
