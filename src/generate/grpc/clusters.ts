import { isIp } from "../../base/address.ts";
import { matchesLabels } from "../../base/labels.ts";
import type { Query } from "../../engine/index.ts";
import type { OutboundClusterName } from "../../envoy/cluster/index.ts";
import { buildGrpcCluster, type GrpcClusterInput } from "../../envoy/grpc/grpc-cluster.ts";
import { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { ClientTLSSettings_TLSmode as TlsMode } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Service } from "../../model/service.ts";
import { encoded, sameEncoded } from "../../wire/encode.ts";
import type { Encoded } from "../../wire/encoded.ts";
import { CLUSTER_TYPE } from "../../wire/type-urls.ts";
import { algorithmOf } from "../clusters/balancing-settings.ts";
import { type ClientClass, clientClassId, clientClassOf } from "../clusters/client-class.ts";
import { clientTls } from "../clusters/client-tls.ts";
import { meshOf } from "../clusters/outbound-clusters.ts";
import { type PortPolicy, portPolicy, servicePolicy } from "../clusters/traffic-policy.ts";
import type { GenerateContext } from "../context.ts";
import { withMeshDefaults } from "../endpoints/assignment-plan.ts";
import type { Destination, Destinations } from "./destinations.ts";
import type { Found, NamedResources } from "./named-provider.ts";

interface ClusterOwner {
  readonly client: ClientClass;
  /** The workload can get a certificate of the mesh. */
  readonly identity: boolean;
}

/** Clusters by name: those that routes of a client lead to. */
export function grpcClusters(ctx: GenerateContext, destinations: Destinations): NamedResources<ClusterOwner> {
  const built = ctx.engine.query<GrpcClusterInput, Encoded>({
    name: "grpc.cluster",
    id: (input) => JSON.stringify(input),
    compute: (input) => encoded({ typeUrl: CLUSTER_TYPE, name: input.name }, ClusterSchema, buildGrpcCluster(input)),
    same: sameEncoded,
  });
  return {
    typeUrl: CLUSTER_TYPE,
    ownerOf: (view) => ({ client: clientClassOf(ctx, view), identity: view.hasIdentity !== false }),
    ownerId: ({ client, identity }) => `${clientClassId(client)}|${identity}`,
    find: ({ client, identity }, name) => {
      const destination = destinations.find(client, name);
      return destination === undefined ? undefined : cluster({ ctx, built, identity }, destination);
    },
  };
}

interface ClusterParts {
  readonly ctx: GenerateContext;
  readonly built: Query<GrpcClusterInput, Encoded>;
  readonly identity: boolean;
}

function cluster({ ctx, built, identity }: ClusterParts, destination: Destination): Found {
  const { name, cluster: parsed, service, rule, subset } = destination;
  const policy = withMeshDefaults(ctx.inputs.mesh.get("mesh"), servicePolicy(service, portPolicy(rule?.spec, parsed.port, subset)));
  const discovery = discoveryOf(ctx, destination);
  if (typeof discovery === "object" && "refused" in discovery) return discovery;
  const security = securityOf({ ctx, policy, parsed, service, identity });
  if (security !== undefined && "refused" in security) return security;
  const requests = policy.connectionPool?.http?.http2MaxRequests ?? 0;
  const input: GrpcClusterInput = {
    name,
    discovery,
    ...ringHashOf(policy),
    ...(requests > 0 && { maxRequests: requests }),
    ...(security !== undefined && { mutualTls: security }),
  };
  return { resource: built(input), objects: [service.objectKey, ...(rule?.keys ?? [])] };
}

/** Endpoints that have addresses are asked for, whatever finds them for a proxy. A name must be the only one: gRPC looks up no more. */
function discoveryOf(
  ctx: GenerateContext,
  { service, subset, cluster: { host, port } }: Destination,
): GrpcClusterInput["discovery"] | { readonly refused: string } {
  if (service.resolution !== "dns" && service.resolution !== "dnsRoundRobin") return "eds";
  const endpoints = ctx.registry
    .endpoints(service, port)
    .filter(({ unixPath, labels }) => !unixPath && matchesLabels(subset?.labels ?? {}, labels));
  const named = endpoints.find(({ address }) => !isIp(address));
  if (named === undefined) return "eds";
  if (endpoints.length === 1) return { host: named.address, port: named.port };
  return {
    refused: `${host} has several endpoints and at least one is a name; gRPC clients look up a name only where it is the only endpoint`,
  };
}

/** All hashes become a ring, the only one gRPC has: equal keys go to equal endpoints all the same. */
function ringHashOf({ loadBalancer }: PortPolicy): Pick<GrpcClusterInput, "ringHash"> {
  const algorithm = algorithmOf(loadBalancer, "eds");
  if (algorithm.kind === "ringHash") return { ringHash: { minimumRingSize: algorithm.minimumRingSize } };
  return algorithm.kind === "maglev" ? { ringHash: { minimumRingSize: undefined } } : {};
}

interface SecurityQuery {
  readonly ctx: GenerateContext;
  readonly policy: PortPolicy;
  readonly parsed: OutboundClusterName;
  readonly service: Service;
  readonly identity: boolean;
}

/**
 * Mutual TLS where a rule demands it, as in Istio: nobody can tell beforehand whether the application lets xDS choose its credentials, and a
 * gRPC client cannot offer TLS to some endpoints only. Other TLS needs roots that a client's certificate provider does not have.
 */
function securityOf({
  ctx,
  policy,
  parsed,
  service,
  identity,
}: SecurityQuery): GrpcClusterInput["mutualTls"] | { readonly refused: string } {
  const settings = policy.tls;
  if (settings === undefined || settings.mode === TlsMode.DISABLE) return undefined;
  if (settings.mode !== TlsMode.ISTIO_MUTUAL) {
    const mode = TlsMode[settings.mode];
    return {
      refused: `a DestinationRule demands TLS of mode ${mode} towards ${parsed.host}; gRPC clients have certificates of the mesh only`,
    };
  }
  const { security } = clientTls({
    cluster: parsed,
    settings,
    mesh: meshOf(ctx),
    identity,
    files: undefined,
    credentials: false,
    credentialSocket: false,
    automatic: false,
    addressless: false,
    http2: true,
    external: service.meshExternal,
    serviceAccounts: () => ctx.registry.serviceAccounts(service, parsed.port),
    subjectAltNames: service.subjectAltNames,
  });
  if (security.kind === "plain") return undefined;
  return { names: security.tls.validation?.subjectAltNames.flatMap((name) => ("exact" in name ? [name.exact] : [])) ?? [] };
}
