import type { DnsCacheInput } from "../../../envoy/dns-cache.ts";
import type { FilterChainInput } from "../../../envoy/listener/filter-chain.ts";
import { isTls } from "../../../model/protocol.ts";
import type { Service } from "../../../model/service.ts";
import type { GenerateContext, ResolvedVirtualService } from "../../context.ts";
import { serviceDnsCache } from "../../dynamic-dns.ts";
import { byRoutes, type Forwarding, toTarget } from "../l4-routes.ts";
import { type ChainSettings, decodeOf } from "../settings/chain-settings.ts";
import { matchesSubject, meshSubject } from "./l4-rules.ts";
import type { Slot } from "./slots.ts";

/** A client may take this long for a TLS handshake, as in Istio. */
export const HANDSHAKE_TIMEOUT_MS = 15_000;

/** What the TCP filter chains of a slot depend on besides the slot. */
export interface TcpChainContext {
  readonly ctx: Pick<GenerateContext, "registry" | "lookups">;
  /** Keys of the VirtualServices with TCP or TLS rules for a slot. */
  readonly rulesFor: (slot: Slot) => readonly string[];
  readonly namespace: string;
  readonly settings: ChainSettings;
  /** Labels of the client that rules may match by. */
  readonly sourceLabels: Readonly<Record<string, string>>;
  /** Which answers of a DNS server the client can use. */
  readonly lookupFamily: DnsCacheInput["family"];
  /** Labels of the client, where DestinationRules select by them. */
  readonly ruleLabels: Readonly<Record<string, string>> | undefined;
}

interface Chaining extends TcpChainContext {
  readonly slot: Slot;
  readonly service: Service;
  readonly virtualServices: readonly ResolvedVirtualService[];
  readonly forwarding: Forwarding;
}

/** Filter chains of a port that carries bytes: by the TCP or TLS rules of VirtualServices, else straight to the service. */
export function tcpChains(context: TcpChainContext, slot: Slot): readonly FilterChainInput[] {
  const service = context.ctx.registry.service(slot.service);
  if (service === undefined) return [];
  const forwarding: Forwarding = {
    client: { namespace: context.namespace, ruleLabels: context.ruleLabels },
    settings: context.settings,
    port: slot.port,
    ...decodeOf(slot.protocol, context.settings),
  };
  const virtualServices = context
    .rulesFor(slot)
    .map((key) => context.ctx.lookups.virtualService(key))
    .filter((found) => found !== undefined);
  const chaining = { ...context, slot, service, virtualServices, forwarding };
  return isTls(slot.protocol) ? tlsChains(chaining) : plainChains(chaining);
}

/** The first of several matches that Envoy could not tell apart counts. Without a match the port leads to its service, found by SNI where it has no address. */
function tlsChains(chaining: Chaining): readonly FilterChainInput[] {
  const { ctx, slot, virtualServices, forwarding } = chaining;
  const subject = subjectOf(chaining);
  const chains = virtualServices.flatMap(({ spec, name, namespace }) =>
    spec.tls.flatMap((rule) =>
      rule.match
        .filter((match) => matchesSubject(match, subject))
        .flatMap((match) => {
          const tcp = byRoutes(ctx, { routes: rule.route, title: `${name}.${namespace}` }, forwarding);
          const destinations = match.destinationSubnets.length > 0 ? match.destinationSubnets : slot.ranges;
          return tcp === undefined ? [] : [chain({ tcp }, { serverNames: match.sniHosts, destinations })];
        }),
    ),
  );
  if (chains.length > 0) return chains;
  const bySni = slot.byName === true || slot.ranged || (slot.addressless && slot.wildcard);
  return [
    chain(
      { tcp: { ...toTarget(ctx, ownTarget(chaining), forwarding), ...(slot.byName === true && { bySni: namedBySni(chaining) }) } },
      { serverNames: bySni ? [slot.service.host] : [], destinations: slot.ranges },
    ),
  ];
}

const namedBySni = ({ slot, lookupFamily }: Chaining) => ({ cache: serviceDnsCache(slot.service.host, lookupFamily), port: slot.port });

/** Rules are tried in order; the first that asks for no destination range takes all that is left, so nothing can follow it. */
function plainChains(chaining: Chaining): readonly FilterChainInput[] {
  const { ctx, slot, virtualServices, forwarding } = chaining;
  const subject = subjectOf(chaining);
  const chains: FilterChainInput[] = [];
  for (const { spec, name, namespace } of virtualServices) {
    for (const rule of spec.tcp) {
      const matches = rule.match.filter((match) => matchesSubject(match, subject));
      if (rule.match.length > 0 && matches.length === 0) continue;
      const tcp = byRoutes(ctx, { routes: rule.route, title: `${name}.${namespace}` }, forwarding);
      if (tcp === undefined) continue;
      const takesAll = matches.length === 0 || matches.some(({ destinationSubnets }) => destinationSubnets.length === 0);
      chains.push(
        chain({ tcp }, { destinations: takesAll ? slot.ranges : matches.flatMap(({ destinationSubnets }) => destinationSubnets) }),
      );
      if (takesAll) return chains;
    }
  }
  return [...chains, chain({ tcp: toTarget(ctx, ownTarget(chaining), forwarding) }, { destinations: slot.ranges })];
}

const subjectOf = ({ slot, namespace, sourceLabels }: Chaining) => meshSubject({ port: slot.port, namespace, labels: sourceLabels });

/** A listener on a port of its own (Sidecar egress) leads to the only port of the service, or to the port of the same number. */
function ownTarget({ slot, service }: Chaining) {
  const only = service.ports.length === 1 ? service.ports[0]?.number : undefined;
  return {
    host: service.host,
    subset: "",
    port: only ?? (slot.port || (service.ports[0]?.number ?? 0)),
    service,
  };
}

function chain(
  content: FilterChainInput["content"],
  match: { readonly serverNames?: readonly string[]; readonly destinations: readonly string[] },
): FilterChainInput {
  return {
    match: {
      ...(match.serverNames !== undefined && match.serverNames.length > 0 && { serverNames: match.serverNames }),
      ...(match.destinations.length > 0 && { destinations: match.destinations }),
    },
    content,
    handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
  };
}
