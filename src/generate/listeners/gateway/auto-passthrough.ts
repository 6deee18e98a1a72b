import { matchesHost } from "../../../base/hostname.ts";
import type { FilterChainInput } from "../../../envoy/listener/filter-chain.ts";
import type { GatewayServer } from "../../context.ts";
import { HANDSHAKE_TIMEOUT_MS } from "../outbound/tcp-chains.ts";
import type { GatewayListenerParts } from "./gateway-listener.ts";

/**
 * Chains of a server that passes mutual TLS of other networks on: clients say in SNI which cluster they mean
 * (`outbound_.80_._.web.shop.svc.cluster.local`), and only services the server's hosts allow have a chain.
 */
export function sniRoutedChains({ ctx, client, settings }: GatewayListenerParts, server: GatewayServer): readonly FilterChainInput[] {
  const scope = ctx.lookups.scope({ namespace: client.namespace, sidecar: undefined });
  return scope.services
    .map((ref) => ctx.registry.service(ref))
    .filter((service) => service !== undefined && !service.meshExternal)
    .filter((service) =>
      server.hosts.some(
        ({ namespace, host }) => (namespace === "*" || namespace === service?.namespace) && matchesHost(host, service?.host ?? ""),
      ),
    )
    .flatMap((service) => {
      if (service === undefined) return [];
      const rule = ctx.lookups.destinationRule({
        host: service.host,
        clientNamespace: client.namespace,
        serviceNamespace: service.namespace,
        labels: undefined,
      });
      const subsets = ["", ...(rule?.spec.subsets.map(({ name }) => name) ?? [])];
      return service.ports
        .filter(({ protocol }) => protocol !== "UDP")
        .flatMap(({ number }) =>
          subsets.map((subset) => {
            const cluster = `outbound_.${number}_.${subset}_.${service.host}`;
            return {
              match: {
                serverNames: [cluster],
                applicationProtocols: ["istio", "istio-peer-exchange", "istio-http/1.0", "istio-http/1.1", "istio-h2"],
              },
              content: { tcp: { statPrefix: cluster, destinations: [{ cluster, weight: 0 }], accessLogs: settings.accessLogs } },
              handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
            };
          }),
        );
    });
}
