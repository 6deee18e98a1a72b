import { msOfDuration } from "../../base/duration.ts";
import type { TcpDestination, TcpProxyInput } from "../../envoy/filters/tcp-proxy.ts";
import type { Subset, TrafficPolicy } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Destination } from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { RouteDestination } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { Service } from "../../model/service.ts";
import { keepsClients, portPolicy } from "../clusters/traffic-policy.ts";
import type { GenerateContext, ResolvedDestinationRule } from "../context.ts";
import { extensionsAt } from "../extensions/chain-extensions.ts";
import type { ChainSettings } from "./settings/chain-settings.ts";

type Context = Pick<GenerateContext, "registry" | "lookups">;

/** Who asks: visibility of services and rules depends on it. */
export interface Client {
  readonly namespace: string;
  /** Labels, where rules with a workloadSelector exist in the namespace. */
  readonly ruleLabels: Readonly<Record<string, string>> | undefined;
}

/** One place connections go to. */
export interface Target {
  readonly host: string;
  readonly subset: string;
  readonly port: number;
  /** Undefined where the client sees no such service; then no rule holds for it. */
  readonly service: Pick<Service, "namespace" | "clientAffinity"> | undefined;
}

export interface Forwarding {
  readonly client: Client;
  readonly settings: ChainSettings;
  /** Port the listener stands for: what a destination means that names none. */
  readonly port: number;
  /** Decode what the port is declared to speak. */
  readonly decode?: NonNullable<TcpProxyInput["decode"]>;
}

const clusterOf = ({ host, subset, port }: Target): string => `outbound|${port}|${subset}|${host}`;

/** Forwarding to one target, by the traffic policy the client has for it. */
export function toTarget(ctx: Context, target: Target, forwarding: Forwarding): TcpProxyInput {
  const cluster = clusterOf(target);
  return proxy(cluster, [{ cluster, weight: 0, target }], { ctx, target, forwarding });
}

/**
 * The same to a cluster that clients of other networks name: what they send is mutual TLS of theirs, which neither tunnels nor extensions are for.
 */
export function toNamedCluster(ctx: Context, target: Target & { readonly cluster: string }, forwarding: Forwarding): TcpProxyInput {
  const { cluster } = target;
  const {
    tunnel: _tunnel,
    extensions: _extensions,
    ...input
  } = proxy(cluster, [{ cluster, weight: 0, target }], {
    ctx,
    target,
    forwarding,
  });
  return input;
}

/**
 * Forwarding by the routes of a VirtualService rule. Where several targets share connections, statistics are named after the object, and
 * what is said once for all of them comes from the rule of the first one's host.
 */
export function byRoutes(
  ctx: Context,
  rule: { readonly routes: readonly RouteDestination[]; readonly title: string },
  forwarding: Forwarding,
): TcpProxyInput | undefined {
  const targets = rule.routes.flatMap(({ destination, weight }) =>
    destination === undefined ? [] : [{ target: targetOf(ctx, destination, forwarding), weight }],
  );
  const [first] = targets;
  if (first === undefined) return undefined;
  const live = targets.filter(({ weight }) => weight > 0);
  if (targets.length === 1 || live.length === 0) return toTarget(ctx, first.target, forwarding);
  const destinations = live.map(({ target, weight }) => ({ cluster: clusterOf(target), weight, target }));
  return proxy(rule.title, destinations, { ctx, target: { ...first.target, subset: "" }, forwarding });
}

/** A destination without a port means the only port of its service, or else the port the client connected to. */
function targetOf(ctx: Context, { host: named, subset, port }: Destination, forwarding: Forwarding): Target {
  const host = ctx.lookups.aliases.targetOf(named) ?? named;
  const ref = ctx.lookups.visibleService(host, forwarding.client.namespace);
  const service = ref && ctx.registry.service(ref);
  const ports = service?.ports ?? [];
  const only = ports.length === 1 ? ports[0]?.number : undefined;
  return { host, subset, port: port?.number || only || forwarding.port, service };
}

interface Weighted extends TcpDestination {
  readonly target: Target;
}

interface ProxyParts {
  readonly ctx: Context;
  readonly target: Target;
  readonly forwarding: Forwarding;
}

/** Where several targets share connections, what is said of one subset cannot hold for all: a tunnel is the host's then. */
function proxy(statPrefix: string, destinations: readonly Weighted[], { ctx, target, forwarding }: ProxyParts): TcpProxyInput {
  const rule = ruleFor(ctx, target, forwarding.client);
  const general = rule?.spec.trafficPolicy;
  const subset = subsetOf(rule, target)?.trafficPolicy;
  // A cluster that does not hash leaves the address unused, so one target that wants it is enough.
  const hashSourceIp =
    hashesSource(subset?.loadBalancer === undefined ? general : subset) ||
    destinations.some((destination) => keepsClientsAt(ctx, destination.target, forwarding.client));
  const idle = general?.connectionPool?.tcp?.idleTimeout;
  const idleTimeoutMs = idle === undefined ? forwarding.settings.idleTimeoutMs : msOfDuration(idle);
  const duration = general?.connectionPool?.tcp?.maxConnectionDuration;
  const tunnel = (target.subset === "" || destinations.length > 1 ? general : subset)?.tunnel;
  const extensions = extensionsAt(forwarding.settings.extensions, forwarding.port).network;
  return {
    statPrefix,
    destinations: destinations.map(({ cluster, weight }) => ({ cluster, weight })),
    accessLogs: forwarding.settings.accessLogs,
    ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
    ...(duration !== undefined && { maxDurationMs: msOfDuration(duration) }),
    ...(hashSourceIp && { hashSourceIp }),
    ...(tunnel !== undefined && {
      tunnel: { target: hostAndPort(tunnel.targetHost, tunnel.targetPort), usePost: tunnel.protocol.toUpperCase() === "POST" },
    }),
    ...(forwarding.decode !== undefined && { decode: forwarding.decode }),
    ...(extensions !== undefined && { extensions }),
  };
}

function ruleFor(ctx: Context, { host, service }: Target, client: Client): ResolvedDestinationRule | undefined {
  if (service === undefined) return undefined;
  const { namespace: clientNamespace, ruleLabels: labels } = client;
  return ctx.lookups.destinationRule({ host, clientNamespace, serviceNamespace: service.namespace, labels });
}

const subsetOf = (rule: ResolvedDestinationRule | undefined, target: Target): Subset | undefined =>
  target.subset === "" ? undefined : rule?.spec.subsets.find(({ name }) => name === target.subset);

/** Whether the service of a target wants each client at one endpoint; services that do not are most, and nothing is looked up for them. */
function keepsClientsAt(ctx: Context, target: Target, client: Client): boolean {
  if (target.service?.clientAffinity !== true) return false;
  const rule = ruleFor(ctx, target, client);
  return keepsClients(target.service, portPolicy(rule?.spec, target.port, subsetOf(rule, target)));
}

function hashesSource(policy: TrafficPolicy | undefined): boolean {
  const hash = policy?.loadBalancer?.lbPolicy;
  return hash?.case === "consistentHash" && hash.value.hashKey.case === "useSourceIp" && hash.value.hashKey.value;
}

const hostAndPort = (host: string, port: number): string => (host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`);
