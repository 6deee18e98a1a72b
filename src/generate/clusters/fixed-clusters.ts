import {
  ANY_NAME_CLUSTER,
  BLACK_HOLE_CLUSTER,
  type ClusterInput,
  INBOUND_PASSTHROUGH_CLUSTER,
  PASSTHROUGH_CLUSTER,
} from "../../envoy/cluster/index.ts";
import { CREDENTIAL_CLUSTER, CREDENTIAL_SOCKET } from "../../envoy/tls/index.ts";
import { type MeshConfig, MeshConfig_OutboundTrafficPolicy_Mode as OutboundMode } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { NO_LOCALITY } from "../../model/locality.ts";
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

type FixedTraits = Pick<ClientTraits, "router" | "identity" | "family" | "bothFamilies" | "preserveHeaderCase" | "credentialSocket">;

/** Clusters every proxy has: where nothing goes, and for sidecars the ways through to the original destination. */
export function fixedClusters(mesh: MeshConfig, traits: FixedTraits): readonly ClusterInput[] {
  const credentials = traits.credentialSocket ? [credentialServer(mesh)] : [];
  if (traits.router) return [blackHole(mesh), ...credentials];
  return [
    blackHole(mesh),
    ...credentials,
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
    files: undefined,
    credentials: false,
    credentialSocket: false,
    automatic: false,
    addressless: true,
    byName: true,
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

/** The SDS server on the proxy's machine that has credentials of its own. */
function credentialServer(mesh: MeshConfig): ClusterInput {
  const endpoint = {
    address: CREDENTIAL_SOCKET,
    port: 0,
    unixPath: true,
    weight: undefined,
    health: "healthy",
    mutualTls: false,
    workload: "",
  } as const;
  return {
    ...blackHole(mesh),
    name: CREDENTIAL_CLUSTER,
    http: { ...PLAIN_HTTP, version: "http2" },
    assignment: {
      clusterName: CREDENTIAL_CLUSTER,
      localities: [{ locality: NO_LOCALITY, priority: 0, weight: undefined, endpoints: [endpoint] }],
    },
  };
}

/** Nothing but a version is said of HTTP. */
const PLAIN_HTTP = {
  idleTimeoutMs: undefined,
  maxRequestsPerConnection: undefined,
  maxConnectionDurationMs: undefined,
  maxConcurrentStreams: undefined,
  http2Keepalive: undefined,
  autoSni: false,
  autoSanValidation: false,
} as const;

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
      ...PLAIN_HTTP,
      version: "downstream",
      idleTimeoutMs: PASSTHROUGH_IDLE_MS,
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
