import { serviceHost } from "../../base/hostname.ts";
import { type Labels, matchesLabels } from "../../base/labels.ts";
import type { Node } from "../../config/kinds/node/node.ts";
import type { ServiceSpec } from "../../config/kinds/service/service.ts";
import { type ConfigObject, clusterOfKey } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import type { GenerateContext } from "../context.ts";
import {
  DEFAULT_GATEWAY_PORT,
  type GatewayService,
  gatewayNames,
  gatewaysOf,
  type NetworkGateways,
  resolvedGateways,
} from "./network-gateways.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "registry" | "settings">;

const NETWORK_LABEL = "topology.istio.io/network";
const PORT_LABEL = "networking.istio.io/gatewayPort";
/** A NodePort Service with this annotation is reached at the nodes it selects, for want of a load balancer. */
const NODE_SELECTOR = "traffic.istio.io/nodeSelector";

export interface NetworkGatewayQueries {
  /** Gateways as they are named: host names count, where a proxy resolves them itself. */
  readonly namedGateways: Query<"", NetworkGateways>;
  /** Gateways by address. */
  readonly networkGateways: Query<"", NetworkGateways>;
  /** Host names of gateways, which somebody has to resolve. */
  readonly gatewayNames: Query<"", readonly string[]>;
}

/** Gateways into the networks of the mesh. Services that say nothing of networks re-run their namespace's list and nothing above it. */
export function defineNetworkGateways(ctx: Context): NetworkGatewayQueries {
  const named = ctx.engine.query<"", readonly string[]>({
    name: "endpoints.gatewayServiceHosts",
    compute: () =>
      Object.values(ctx.inputs.networks.get("networks")?.networks ?? {}).flatMap(({ gateways }) =>
        gateways.flatMap(({ gw }) => (gw.case === "registryServiceName" ? [gw.value] : [])),
      ),
  });
  const nodeAddresses = ctx.engine.query<string, readonly string[]>({
    name: "endpoints.nodeAddresses",
    compute: (selection) =>
      ctx.inputs.objects.keys("kind", "Node").flatMap((key) => {
        const [cluster, selector] = splitOnce(selection);
        if (clusterOfKey(key) !== cluster) return [];
        const object = ctx.inputs.objects.get(key) as ConfigObject<Node> | undefined;
        return object !== undefined && matchesLabels(selectorIn(selector), object.labels) ? externalAddress(object.spec) : [];
      }),
  });
  const inNamespace = ctx.engine.query<string, readonly GatewayService[]>({
    name: "endpoints.gatewayServicesIn",
    compute: (namespace) => {
      const hosts = new Set(named(""));
      return ctx.inputs.objects.keys("kindNamespace", `Service/${namespace}`).flatMap((key) => {
        const object = ctx.inputs.objects.get(key) as ConfigObject<ServiceSpec> | undefined;
        const service = object && gatewayService(object, { domain: ctx.settings.clusterDomain, nodeAddresses });
        return service !== undefined && (service.network !== undefined || hosts.has(service.host)) ? [service] : [];
      });
    },
  });
  const namedGateways = ctx.engine.query<"", NetworkGateways>({
    name: "endpoints.namedGateways",
    compute: () =>
      gatewaysOf(
        ctx.inputs.networks.get("networks"),
        ctx.registry.namespaces().flatMap((namespace) => inNamespace(namespace)),
      ),
  });
  return {
    namedGateways,
    networkGateways: ctx.engine.query<"", NetworkGateways>({
      name: "endpoints.networkGateways",
      compute: () => resolvedGateways(namedGateways(""), (name) => ctx.inputs.names.get(name) ?? []),
    }),
    gatewayNames: ctx.engine.query<"", readonly string[]>({
      name: "endpoints.gatewayNames",
      compute: () => gatewayNames(namedGateways("")),
    }),
  };
}

interface ServiceSurroundings {
  readonly domain: string;
  /** Addresses of the nodes that a selector (`cluster|JSON of labels`) takes, as the world outside reaches them. */
  readonly nodeAddresses: (selection: string) => readonly string[];
}

/** A Service without the port of a gateway leads nowhere, whatever its labels say; addresses that it has itself go before those of nodes. */
function gatewayService(object: ConfigObject<ServiceSpec>, { domain, nodeAddresses }: ServiceSurroundings): GatewayService {
  const { name, namespace, labels, spec } = object;
  const wanted = Number(labels[PORT_LABEL]);
  const port = Number.isInteger(wanted) && wanted > 0 ? wanted : DEFAULT_GATEWAY_PORT;
  const own = [...spec.externalIPs, ...spec.loadBalancer.flatMap(({ ip, hostname }) => ip ?? hostname ?? [])];
  const selector = spec.type === "NodePort" && own.length === 0 ? object.annotations[NODE_SELECTOR] : undefined;
  return {
    host: serviceHost(name, namespace, domain),
    addresses: selector === undefined ? own : nodeAddresses(`${object.cluster ?? ""}|${selector}`),
    network: (spec.ports.some((one) => one.port === port) && labels[NETWORK_LABEL]) || undefined,
    port,
    ...(selector !== undefined && { nodePorts: nodePorts(spec) }),
  };
}

const nodePorts = ({ ports }: ServiceSpec): Readonly<Record<number, number>> =>
  Object.fromEntries(ports.flatMap(({ port, nodePort }) => (nodePort === undefined ? [] : [[port, nodePort]])));

const externalAddress = ({ addresses }: Node): readonly string[] =>
  addresses
    .filter(({ type, address }) => type === "ExternalIP" && address !== undefined && address !== "")
    .flatMap(({ address }) => address ?? [])
    .slice(0, 1);

function splitOnce(text: string): readonly [string, string] {
  const at = text.indexOf("|");
  return [text.slice(0, at), text.slice(at + 1)];
}

/** An annotation that is no map of labels takes every node, as in Istio. */
function selectorIn(text: string): Labels {
  try {
    const value: unknown = JSON.parse(text);
    const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
    return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
  } catch {
    return {};
  }
}
