import {
  ANY_NAME_CLUSTER,
  BLACK_HOLE_CLUSTER,
  type ClusterInput,
  INBOUND_PASSTHROUGH_CLUSTER,
  PASSTHROUGH_CLUSTER,
} from "../../envoy/cluster/index.ts";
import { type MeshConfig, MeshConfig_OutboundTrafficPolicy_Mode as OutboundMode } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { anyNameDnsCache, byName } from "../dynamic-dns.ts";
import { clientTls } from "./client-tls.ts";
import type { ClientTraits } from "./outbound-key.ts";
import { connectTimeoutOf, keepaliveOf, limitsOf } from "./pool-settings.ts";

/** Connections of the proxy to its own application come from this address, so that they are told apart from those to be captured. */
const INBOUND_SOURCE = { v4: ["127.0.0.6"], v6: ["::6"], all: ["127.0.0.6", "::6"] } as const satisfies Record<
  ClientTraits["family"],
  readonly string[]
>;

export const inboundSource = (family: ClientTraits["family"]): readonly string[] => INBOUND_SOURCE[family];

/** Idle HTTP connections to destinations nobody configured are not kept for an hour, which is Envoy's default. */
const PASSTHROUGH_IDLE_MS = 300_000;

type FixedTraits = Pick<ClientTraits, "router" | "identity" | "family" | "bothFamilies" | "preserveHeaderCase">;

/** Clusters every proxy has: where nothing goes, and for sidecars the ways through to the original destination. */
export function fixedClusters(mesh: MeshConfig, traits: FixedTraits): readonly ClusterInput[] {
  if (traits.router) return [blackHole(mesh)];
  return [
    blackHole(mesh),
    passthrough(mesh, traits, { name: PASSTHROUGH_CLUSTER, bind: [] }),
    passthrough(mesh, traits, { name: INBOUND_PASSTHROUGH_CLUSTER, bind: inboundSource(traits.bothFamilies ? "all" : traits.family) }),
    ...(mesh.outboundTrafficPolicy?.mode === OutboundMode.ALLOW_ANY_DYNAMIC_DNS ? anyName(mesh, traits) : []),
  ];
}

/** Hosts nobody declared, found by the names that requests ask for. */
function anyName(mesh: MeshConfig, traits: FixedTraits): readonly ClusterInput[] {
  const tls = clientTls({
    cluster: { port: 0, subset: "", host: "*" },
    settings: mesh.outboundTrafficPolicy?.tls,
    mesh,
    identity: traits.identity,
    credentials: false,
    automatic: false,
    addressless: true,
    http2: false,
    serviceAccounts: () => [],
    subjectAltNames: [],
    external: false,
  });
  const { http, ...rest } = passthrough(mesh, traits, { name: ANY_NAME_CLUSTER, bind: [] });
  return [
    {
      ...rest,
      discovery: byName(anyNameDnsCache(traits.family), tls),
      transport: { security: tls.security, proxyProtocol: undefined },
      http: http && { ...http, autoSni: tls.autoSni, autoSanValidation: tls.autoSanValidation },
    },
  ];
}

function blackHole(mesh: MeshConfig): ClusterInput {
  return {
    ...bare(mesh),
    name: BLACK_HOLE_CLUSTER,
    discovery: "static",
    loadBalancer: { algorithm: { kind: "roundRobin", warmup: undefined }, panicThreshold: undefined, localities: undefined },
    limits: undefined,
    keepalive: undefined,
  };
}

/** What nobody declares is limited by the mesh's default connection pool, if it has one. */
function passthrough(mesh: MeshConfig, traits: FixedTraits, { name, bind }: Pick<ClusterInput, "name" | "bind">): ClusterInput {
  const pool = mesh.defaultTrafficPolicy?.connectionPool;
  return {
    ...bare(mesh),
    name,
    bind,
    connectTimeoutMs: connectTimeoutOf(pool, mesh),
    limits: limitsOf(pool),
    keepalive: keepaliveOf(pool, mesh),
    http: {
      version: "downstream",
      idleTimeoutMs: PASSTHROUGH_IDLE_MS,
      maxRequestsPerConnection: undefined,
      maxConnectionDurationMs: undefined,
      maxConcurrentStreams: undefined,
      http2Keepalive: undefined,
      autoSni: false,
      autoSanValidation: false,
      ...(traits.preserveHeaderCase && { preserveHeaderCase: true }),
    },
  };
}

/** A cluster that forwards to the original destination and nothing else. */
export function bare(mesh: MeshConfig): Omit<ClusterInput, "name"> {
  return {
    discovery: "originalDst",
    connectTimeoutMs: connectTimeoutOf(undefined, mesh),
    loadBalancer: { algorithm: { kind: "clusterProvided" }, panicThreshold: undefined, localities: undefined },
    limits: limitsOf(undefined),
    outlier: undefined,
    http: undefined,
    transport: { security: { kind: "plain" }, proxyProtocol: undefined },
    keepalive: keepaliveOf(undefined, mesh),
    bind: [],
    assignment: undefined,
    dns: undefined,
    metadata: undefined,
  };
}
