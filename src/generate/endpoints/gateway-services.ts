import { serviceHost } from "../../base/hostname.ts";
import type { ServiceSpec } from "../../config/kinds/service/service.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import type { GenerateContext } from "../context.ts";
import { type GatewayService, gatewayNames, gatewaysOf, type NetworkGateways, resolvedGateways } from "./network-gateways.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "registry" | "settings">;

const NETWORK_LABEL = "topology.istio.io/network";
const PORT_LABEL = "networking.istio.io/gatewayPort";

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
  const inNamespace = ctx.engine.query<string, readonly GatewayService[]>({
    name: "endpoints.gatewayServicesIn",
    compute: (namespace) => {
      const hosts = new Set(named(""));
      return ctx.inputs.objects.keys("kindNamespace", `Service/${namespace}`).flatMap((key) => {
        const object = ctx.inputs.objects.get(key) as ConfigObject<ServiceSpec> | undefined;
        const service = object && gatewayService(object, ctx.settings.clusterDomain);
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

function gatewayService({ name, namespace, labels, spec }: ConfigObject<ServiceSpec>, domain: string): GatewayService {
  const port = Number(labels[PORT_LABEL]);
  return {
    host: serviceHost(name, namespace, domain),
    addresses: [...spec.externalIPs, ...spec.loadBalancer.flatMap(({ ip, hostname }) => ip ?? hostname ?? [])],
    network: labels[NETWORK_LABEL] || undefined,
    port: Number.isInteger(port) && port > 0 ? port : undefined,
  };
}
