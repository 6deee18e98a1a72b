import type { ConfigObject } from "../../config/object.ts";
import { type ClusterInput, inboundClusterName } from "../../envoy/cluster/index.ts";
import { MeshConfig_InboundTrafficPolicy_Mode as InboundMode } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { ConnectionPoolSettings } from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { IstioIngressListener, Sidecar } from "../../gen/istio/networking/v1alpha3/sidecar_pb.js";
import type { ServiceInstance } from "../../model/endpoint.ts";
import { NO_LOCALITY } from "../../model/locality.ts";
import { isHttp, isHttp2, type Protocol } from "../../model/protocol.ts";
import { type ServiceRef, serviceKey } from "../../model/service.ts";
import type { GenerateContext, ResolvedDestinationRule } from "../context.ts";
import { isExported } from "../lookups/export-to.ts";
import { type ClientClass, ruleFor } from "./client-class.ts";
import { bare, inboundSource } from "./fixed-clusters.ts";
import { configPath, meshOf, serviceMetadata } from "./outbound-clusters.ts";
import type { ClientTraits } from "./outbound-key.ts";
import { connectTimeoutOf, httpOptionsOf, keepaliveOf, limitsOf } from "./pool-settings.ts";
import { statName } from "./stat-name.ts";
import { portPolicy } from "./traffic-policy.ts";

/** Everything the inbound clusters of a proxy depend on besides what the registry knows at its addresses. */
export interface InboundKey {
  readonly client: ClientClass;
  readonly addresses: readonly string[];
  readonly remoteCluster: string;
  readonly pod: string;
  readonly claim: string;
  readonly family: ClientTraits["family"];
  readonly preserveHeaderCase: boolean;
  /** Traffic is captured, so the original destination says where a connection was meant to go. */
  readonly captured: boolean;
}

/** What one inbound cluster stands for. */
interface InboundPort {
  readonly port: number;
  readonly protocol: Protocol;
  readonly instances: readonly ServiceInstance[];
  /** Connection pool of the Sidecar; undefined = the one of the service's DestinationRule. */
  readonly pool: ConnectionPoolSettings | undefined;
  readonly endpoint: LocalEndpoint | undefined;
}

interface LocalEndpoint {
  readonly address: string;
  readonly port: number;
  readonly unixPath: boolean;
}

/** Clusters of the application's own ports: those its services name, or those its Sidecar lists in their place. Call inside a query. */
export function inboundClusters(ctx: GenerateContext, key: InboundKey): readonly ClusterInput[] {
  const { client, addresses, remoteCluster: cluster, pod, claim } = key;
  const sidecar =
    client.sidecar === undefined ? undefined : (ctx.inputs.objects.get(client.sidecar) as ConfigObject<Sidecar> | undefined)?.spec;
  const instances = addresses.flatMap((address) => ctx.registry.instancesAt(address, client.namespace, { cluster, pod, claim }));
  if (sidecar !== undefined && sidecar.ingress.length > 0) {
    const ports = sidecar.ingress.map((listener) => listenerPort(key, { sidecar, listener, instances }));
    return onePerPort(ports).map((port) => inboundCluster(ctx, key, port));
  }
  if (!key.captured) return [];
  const local = meshOf(ctx).inboundTrafficPolicy?.mode === InboundMode.LOCALHOST;
  return onePerPort(servicePorts(ctx, instances, sidecar?.inboundConnectionPool))
    .map((port) => (local ? { ...port, endpoint: localEndpoint({ ...key, captured: false }, "", port.port) } : port))
    .map((port) => inboundCluster(ctx, key, port));
}

/** Several services may send to one port: the oldest decides what it speaks. */
function servicePorts(
  ctx: GenerateContext,
  instances: readonly ServiceInstance[],
  pool: ConnectionPoolSettings | undefined,
): readonly InboundPort[] {
  const age = ({ service }: ServiceInstance): number => ctx.registry.service(service)?.createdAt ?? 0;
  const byPort = Map.groupBy(
    instances.toSorted((a, b) => age(a) - age(b)),
    ({ endpoint }) => endpoint.port,
  );
  return [...byPort].flatMap(([port, members]) => {
    const [first] = members;
    const protocol =
      first && ctx.registry.service(first.service)?.ports.find(({ number }) => number === first.servicePort.number)?.protocol;
    return protocol === undefined || protocol === "UDP" || port === 0
      ? []
      : [{ port, protocol, instances: members, pool, endpoint: undefined }];
  });
}

interface ListenerParts {
  readonly sidecar: Sidecar;
  readonly listener: IstioIngressListener;
  readonly instances: readonly ServiceInstance[];
}

function listenerPort(key: InboundKey, { sidecar, listener, instances }: ListenerParts): InboundPort {
  const port = listener.port?.number ?? 0;
  return {
    port,
    protocol: (listener.port?.protocol.toUpperCase() || "Auto") as Protocol,
    instances: instances.filter(({ endpoint, servicePort }) => endpoint.port === port || servicePort.number === port),
    pool: listener.connectionPool ?? sidecar.inboundConnectionPool,
    endpoint: localEndpoint(key, listener.defaultEndpoint, port),
  };
}

/** Where a Sidecar's listener forwards to: a Unix socket, loopback, or the workload's own address, which `0.0.0.0` stands for. */
function localEndpoint({ captured, addresses, family }: InboundKey, target: string, port: number): LocalEndpoint | undefined {
  if (target === "") return captured ? undefined : { address: family === "v6" ? "::1" : "127.0.0.1", port, unixPath: false };
  if (target.startsWith("unix:")) return { address: target.replace(/^unix:(\/\/)?/, ""), port: 0, unixPath: true };
  const colon = target.lastIndexOf(":");
  const address = target.slice(0, colon).replace(/^\[|\]$/g, "");
  return { address: ownAddress(address, addresses), port: Number(target.slice(colon + 1)), unixPath: false };
}

/** Wildcards stand for the workload's address of that family; loopback is of the family that was written where the workload has one of it. */
function ownAddress(address: string, addresses: readonly string[]): string {
  const v4 = addresses.find((one) => !one.includes(":"));
  const v6 = addresses.find((one) => one.includes(":"));
  if (address === "0.0.0.0") return v4 ?? "127.0.0.1";
  if (address === "::") return v6 ?? "::1";
  if (address === "127.0.0.1") return v4 === undefined && v6 !== undefined ? "::1" : address;
  if (address === "::1") return v6 === undefined ? "127.0.0.1" : address;
  return address;
}

const onePerPort = (ports: readonly InboundPort[]): readonly InboundPort[] =>
  [...new Map(ports.toReversed().map((one) => [one.port, one])).values()].reverse();

/**
 * A DestinationRule's connection pool holds at the server as well as at its clients, as in Istio: limits raised for the clients would
 * otherwise end at the server's defaults. A rule that selects workloads is about them as clients.
 */
function inboundCluster(
  ctx: GenerateContext,
  key: InboundKey,
  { port, protocol, instances, pool: own, endpoint }: InboundPort,
): ClusterInput {
  const mesh = meshOf(ctx);
  const [first] = instances;
  const rule = first && ownRule(ctx, key.client, first.service);
  const policy = first === undefined ? {} : portPolicy(rule?.spec, first.servicePort.number);
  const pool = own ?? policy.connectionPool ?? mesh.defaultTrafficPolicy?.connectionPool;
  const sniffed = protocol === "Auto" && ctx.settings.sniffInbound;
  const version = pool?.http?.useClientProtocol === true || sniffed ? "downstream" : isHttp2(protocol) ? "http2" : undefined;
  const name = inboundClusterName(port);
  const services = [...new Map(instances.map(({ service }) => [serviceKey(service), service])).values()];
  return {
    ...bare(mesh),
    name,
    connectTimeoutMs: connectTimeoutOf(pool, mesh),
    limits: limitsOf(pool, policy.retryBudget),
    http: httpOptionsOf({
      version,
      pool,
      ...NO_CLIENT_OPTIONS,
      preserveHeaderCase: key.preserveHeaderCase && (isHttp(protocol) || sniffed),
    }),
    ...statNameOf(ctx, port, first),
    keepalive: keepaliveOf(pool, mesh),
    metadata: {
      config: configPath(rule?.keys[0]),
      subset: undefined,
      services: services.flatMap((ref) => ctx.registry.service(ref) ?? []).map(serviceMetadata),
      external: false,
    },
    ...(endpoint !== undefined && staticTarget(name, endpoint)),
    bind: endpoint === undefined || !isLoopback(endpoint) ? inboundSource(key.family) : [],
  };
}

/** The rule for a workload's own service. As in Istio a workload knows none where it does not see the service, or its Sidecar does not import it. */
function ownRule(ctx: GenerateContext, { namespace, sidecar }: ClientClass, service: ServiceRef): ResolvedDestinationRule | undefined {
  const rule = ruleFor(ctx, { namespace, sidecar, labels: undefined }, service);
  const namespaces = { owner: service.namespace, viewer: namespace };
  if (rule === undefined || (sidecar === undefined && isExported(ctx.registry.service(service)?.exportTo ?? [], [], namespaces)))
    return rule;
  const { services, egress } = ctx.lookups.scope({ namespace, sidecar });
  const isOwn = ({ host }: ServiceRef): boolean => host === service.host;
  return services.some(isOwn) || egress.some(({ destinations }) => destinations.some(isOwn)) ? rule : undefined;
}

/** Servers are not chosen here, so nothing is said of their names or failures. */
const NO_CLIENT_OPTIONS = { autoSni: false, autoSanValidation: false, outlierCodes: [] } as const;

/** What goes to loopback is not captured, so it needs no address to be told apart by. */
const isLoopback = ({ address }: LocalEndpoint): boolean => address === "127.0.0.1" || address === "::1";

function statNameOf(ctx: GenerateContext, port: number, instance: ServiceInstance | undefined): Pick<ClusterInput, "statName"> {
  const pattern = meshOf(ctx).inboundClusterStatName;
  const service = instance && ctx.registry.service(instance.service);
  if (pattern === "" || service === undefined || instance === undefined) return {};
  return { statName: statName(pattern, { service, subset: "", port: instance.servicePort, targetPort: port }) };
}

function staticTarget(
  name: string,
  { address, port, unixPath }: LocalEndpoint,
): Pick<ClusterInput, "discovery" | "loadBalancer" | "assignment"> {
  const endpoint = { address, port, unixPath, weight: undefined, health: "healthy", mutualTls: false, workload: "" } as const;
  return {
    discovery: "static",
    loadBalancer: { algorithm: { kind: "roundRobin", warmup: undefined }, panicThreshold: undefined, localities: undefined },
    assignment: { clusterName: name, localities: [{ locality: NO_LOCALITY, priority: 0, weight: undefined, endpoints: [endpoint] }] },
  };
}
