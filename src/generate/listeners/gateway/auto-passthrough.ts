import { matchesHost } from "../../../base/hostname.ts";
import { ANY_IN_MTLS } from "../../../envoy/listener/alpn.ts";
import type { FilterChainInput } from "../../../envoy/listener/filter-chain.ts";
import type { Service, ServiceRef } from "../../../model/service.ts";
import type { GatewayServer } from "../../context.ts";
import { HANDSHAKE_TIMEOUT_MS } from "../outbound/tcp-chains.ts";
import type { GatewayListenerParts } from "./gateway-listener.ts";

/**
 * Chains of a server that passes mutual TLS of other networks on: clients say in SNI which cluster they mean
 * (`outbound_.80_._.web.shop.svc.cluster.local`), and only services the server's hosts allow have a chain.
 */
export function sniRoutedChains(parts: GatewayListenerParts, server: GatewayServer): readonly FilterChainInput[] {
  const { ctx, client } = parts;
  return ctx.lookups
    .scope({ namespace: client.namespace, sidecar: undefined })
    .services.map((ref) => ctx.registry.service(ref))
    .filter((service) => service !== undefined)
    .filter((service) => !service.meshExternal && allows(server, service))
    .flatMap((service) => clustersOf(parts, service).map((cluster) => chain(parts, cluster)));
}

const allows = ({ hosts }: GatewayServer, service: ServiceRef): boolean =>
  hosts.some(({ namespace, host }) => (namespace === "*" || namespace === service.namespace) && matchesHost(host, service.host));

function clustersOf({ ctx, client }: GatewayListenerParts, { host, namespace, ports }: Service): readonly string[] {
  const rule = ctx.lookups.destinationRule({
    host,
    clientNamespace: client.namespace,
    serviceNamespace: namespace,
    labels: client.ruleLabels,
  });
  const subsets = ["", ...(rule?.spec.subsets.map(({ name }) => name) ?? [])];
  const numbers = ports.filter(({ protocol }) => protocol !== "UDP").map(({ number }) => number);
  return numbers.flatMap((number) => subsets.map((subset) => `outbound_.${number}_.${subset}_.${host}`));
}

const chain = ({ settings }: GatewayListenerParts, cluster: string): FilterChainInput => ({
  match: { serverNames: [cluster], applicationProtocols: ANY_IN_MTLS },
  content: { tcp: { statPrefix: cluster, destinations: [{ cluster, weight: 0 }], accessLogs: settings.accessLogs } },
  handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
});
