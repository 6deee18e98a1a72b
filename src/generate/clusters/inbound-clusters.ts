import type { ConfigObject } from "../../config/object.ts";
import { type ClusterInput, inboundClusterName } from "../../envoy/cluster/index.ts";
import type { ConnectionPoolSettings } from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { IstioIngressListener, Sidecar } from "../../gen/istio/networking/v1alpha3/sidecar_pb.js";
import type { ServiceInstance } from "../../model/endpoint.ts";
import { NO_LOCALITY } from "../../model/locality.ts";
import { isHttp2, type Protocol } from "../../model/protocol.ts";
import { serviceKey } from "../../model/service.ts";
import type { GenerateContext } from "../context.ts";
import { type ClientClass, ruleFor } from "./client-class.ts";
import { bare, inboundSource } from "./fixed-clusters.ts";
import { configPath, meshOf, serviceMetadata } from "./outbound-clusters.ts";
import type { ClientTraits } from "./outbound-key.ts";
import { connectTimeoutOf, httpOptionsOf, keepaliveOf, limitsOf } from "./pool-settings.ts";
import { portPolicy } from "./traffic-policy.ts";

/** Everything the inbound clusters of a proxy depend on besides what the registry knows at its addresses. */
export interface InboundKey {
  readonly client: ClientClass;
  readonly addresses: readonly string[];
  readonly family: ClientTraits["family"];
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
  const { client, addresses } = key;
  const sidecar =
    client.sidecar === undefined ? undefined : (ctx.inputs.objects.get(client.sidecar) as ConfigObject<Sidecar> | undefined)?.spec;
  const instances = addresses.flatMap((address) => ctx.registry.instancesAt(address, client.namespace));
  if (sidecar !== undefined && sidecar.ingress.length > 0) {
    const ports = sidecar.ingress.map((listener) => listenerPort(key, { sidecar, listener, instances }));
    return onePerPort(ports).map((port) => inboundCluster(ctx, key, port));
  }
  if (!key.captured) return [];
  return onePerPort(servicePorts(ctx, instances, sidecar?.inboundConnectionPool)).map((port) => inboundCluster(ctx, key, port));
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
  const own = address === "0.0.0.0" || address === "::" ? addresses[0] : address;
  return { address: own ?? address, port: Number(target.slice(colon + 1)), unixPath: false };
}

const onePerPort = (ports: readonly InboundPort[]): readonly InboundPort[] =>
  [...new Map(ports.toReversed().map((one) => [one.port, one])).values()].reverse();

/**
 * A DestinationRule's connection pool holds at the server as well as at its clients, as in Istio: limits raised for the clients would
 * otherwise end at the server's defaults.
 */
function inboundCluster(
  ctx: GenerateContext,
  key: InboundKey,
  { port, protocol, instances, pool: own, endpoint }: InboundPort,
): ClusterInput {
  const mesh = meshOf(ctx);
  const [first] = instances;
  const rule = first && ruleFor(ctx, key.client, first.service);
  const pool = own ?? (first && portPolicy(rule?.spec, first.servicePort.number).connectionPool);
  const sniffed = protocol === "Auto" && ctx.settings.sniffInbound;
  const version = pool?.http?.useClientProtocol === true || sniffed ? "downstream" : isHttp2(protocol) ? "http2" : undefined;
  const name = inboundClusterName(port);
  const services = [...new Map(instances.map(({ service }) => [serviceKey(service), service])).values()];
  return {
    ...bare(mesh),
    name,
    connectTimeoutMs: connectTimeoutOf(pool, mesh),
    limits: limitsOf(pool),
    http: httpOptionsOf({ version, pool, autoSni: false, autoSanValidation: false }),
    keepalive: keepaliveOf(pool, mesh),
    metadata: {
      config: configPath(rule?.keys[0]),
      subset: undefined,
      services: services.flatMap((ref) => ctx.registry.service(ref) ?? []).map(serviceMetadata),
      external: false,
    },
    ...(endpoint === undefined ? { bind: inboundSource(key.family) } : staticTarget(name, endpoint)),
  };
}

function staticTarget(
  name: string,
  { address, port, unixPath }: LocalEndpoint,
): Pick<ClusterInput, "discovery" | "loadBalancer" | "assignment"> {
  const endpoint = { address, port, unixPath, weight: undefined, health: "healthy", mutualTls: false, workload: "" } as const;
  return {
    discovery: "static",
    loadBalancer: { algorithm: { kind: "roundRobin", warmup: undefined }, panicThreshold: undefined, localityWeighted: false },
    assignment: { clusterName: name, localities: [{ locality: NO_LOCALITY, priority: 0, weight: undefined, endpoints: [endpoint] }] },
  };
}
