import { isWildcardHost, matchesHost } from "../../../base/hostname.ts";
import { ANY_IN_MTLS } from "../../../envoy/listener/alpn.ts";
import type { FilterChainInput } from "../../../envoy/listener/filter-chain.ts";
import type { Service, ServiceRef } from "../../../model/service.ts";
import type { GatewayServer } from "../../context.ts";
import { toNamedCluster } from "../l4-routes.ts";
import { HANDSHAKE_TIMEOUT_MS } from "../outbound/tcp-chains.ts";
import { decodeOf } from "../settings/chain-settings.ts";
import type { GatewayListenerParts } from "./gateway-listener.ts";

/**
 * Chains of a server that passes mutual TLS of other networks on: clients say in SNI which cluster they mean
 * (`outbound_.80_._.web.shop.svc.cluster.local`), and only services the server's hosts allow have a chain. One whose host is a wildcard has none:
 * Envoy takes no such name with an asterisk inside, and would refuse the whole listener.
 */
export function sniRoutedChains(parts: GatewayListenerParts, server: GatewayServer): readonly FilterChainInput[] {
  const { ctx, client } = parts;
  return ctx.lookups
    .scope({ namespace: client.namespace, sidecar: undefined })
    .services.map((ref) => ctx.registry.service(ref))
    .filter((service) => service !== undefined)
    .filter((service) => !service.meshExternal && !isWildcardHost(service.host) && allows(server, service))
    .flatMap((service) => chainsOf(parts, service));
}

const allows = ({ hosts }: GatewayServer, service: ServiceRef): boolean =>
  hosts.some(({ namespace, host }) => (namespace === "*" || namespace === service.namespace) && matchesHost(host, service.host));

/** A chain for each port, and for each subset of it. */
function chainsOf(parts: GatewayListenerParts, service: Service): readonly FilterChainInput[] {
  const { ctx, client, settings } = parts;
  const { host, namespace, ports } = service;
  const rule = ctx.lookups.destinationRule({
    host,
    clientNamespace: client.namespace,
    serviceNamespace: namespace,
    labels: client.ruleLabels,
  });
  const subsets = ["", ...(rule?.spec.subsets.map(({ name }) => name) ?? [])];
  return ports
    .filter(({ protocol }) => protocol !== "UDP")
    .flatMap(({ number: port, protocol }) =>
      subsets.map((subset) => {
        const cluster = `outbound_.${port}_.${subset}_.${host}`;
        const forwarding = { client, settings, port, ...decodeOf(protocol, settings) };
        return {
          match: { serverNames: [cluster], applicationProtocols: ANY_IN_MTLS },
          content: { tcp: toNamedCluster(ctx, { cluster, host, subset, port, service }, forwarding) },
          handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
        };
      }),
    );
}
