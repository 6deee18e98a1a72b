import type { Query } from "../../../engine/index.ts";
import type { ListenerInput } from "../../../envoy/listener/listener.ts";
import type { ProxyView } from "../../../model/proxy.ts";
import type { Encoded, ResourceSet } from "../../../wire/encoded.ts";
import { createCollector, sameResourceSet } from "../../resource-set.ts";
import type { ListenerTools } from "../listener-source.ts";
import type { SettingsTraits } from "../traits.ts";
import { defineL4Rules, type L4Rules } from "./l4-rules.ts";
import { defineListenerIndex, type IndexKey, type ListenerIndex } from "./listener-index.ts";
import { outboundListener } from "./outbound-listener.ts";
import { type OutboundTraits, outboundTraits } from "./outbound-traits.ts";
import { defineSlots } from "./slots.ts";
import { tcpChains } from "./tcp-chains.ts";
import { httpProxyListener, virtualOutbound } from "./virtual-outbound.ts";

interface ListenerKey {
  readonly traits: OutboundTraits;
  readonly name: string;
}

/** Names under which the listeners that belong to no service are asked for here. */
const VIRTUAL_OUTBOUND = "virtualOutbound";
const HTTP_PROXY = "http_proxy";

/** The outbound listeners of scopes. */
export interface Outbound {
  traitsOf(view: ProxyView, settings: SettingsTraits): OutboundTraits;
  names(traits: OutboundTraits): readonly string[];
  readonly listener: Query<ListenerKey, Encoded | undefined>;
  readonly set: Query<OutboundTraits, ResourceSet>;
  /**
   * Listeners for endpoints of headless services that are the proxy itself: what a workload sends to its own address does not pass its
   * outbound listeners, and one on the application's own address and port would be in the way.
   */
  ownEndpoints(traits: OutboundTraits, addresses: readonly string[]): readonly string[];
}

export function defineOutbound(tools: ListenerTools): Outbound {
  const { ctx } = tools;
  const rules = defineL4Rules(ctx);
  const index = defineListenerIndex(ctx, defineSlots(ctx));
  const keyOf = ({ scope, placement }: OutboundTraits): IndexKey => index.keyOf({ scope, ...placement });
  const names = (traits: OutboundTraits): readonly string[] => [
    ...(traits.placement.bindsPorts ? [] : [VIRTUAL_OUTBOUND]),
    ...(httpProxyPort(tools, traits) > 0 ? [HTTP_PROXY] : []),
    ...index.names(keyOf(traits)),
  ];
  const listener = defineListener(tools, { rules, index, keyOf });
  return {
    traitsOf: (view, settings) => outboundTraits({ ctx, sourceLabelKeys: rules.sourceLabelKeys }, view, settings),
    names,
    listener,
    set: ctx.engine.query<OutboundTraits, ResourceSet>({
      name: "outboundListeners",
      id: ({ id }) => id,
      same: sameResourceSet,
      compute: (traits) => {
        const collector = createCollector();
        for (const name of names(traits)) {
          const result = listener.try({ traits, name });
          if (!result.ok) collector.fail(name, result.error.message);
          else if (result.value !== undefined) collector.add(result.value);
        }
        return collector.set;
      },
    }),
    ownEndpoints: (traits, addresses) =>
      index
        .ofEndpoints(keyOf(traits))
        .filter(({ address }) => addresses.includes(address))
        .map(({ name }) => name),
  };
}

interface ListenerParts {
  readonly rules: L4Rules;
  readonly index: ListenerIndex;
  readonly keyOf: (traits: OutboundTraits) => IndexKey;
}

function defineListener(tools: ListenerTools, parts: ListenerParts): Query<ListenerKey, Encoded | undefined> {
  return tools.ctx.engine.query<ListenerKey, Encoded | undefined>({
    name: "outboundListener",
    id: ({ traits, name }) => `${traits.id}#${name}`,
    same: (a, b) => a === b,
    compute: (key) => {
      const input = inputOf(tools, parts, key);
      return input === undefined ? undefined : tools.built(input);
    },
  });
}

function inputOf(tools: ListenerTools, { rules, index, keyOf }: ListenerParts, { traits, name }: ListenerKey): ListenerInput | undefined {
  const { ctx } = tools;
  const { families } = traits.placement;
  const settings = tools.settings({ ...traits.settings, side: "client" });
  const { outboundPolicy, egressProxy } = ctx.lookups.scope(traits.scope);
  const scope = { outboundPolicy, egressProxy };
  if (name === VIRTUAL_OUTBOUND) {
    const port = ctx.inputs.mesh.get("mesh")?.proxyListenPort ?? 15001;
    return virtualOutbound({ families, transparent: traits.transparent, port, scope, settings });
  }
  if (name === HTTP_PROXY) return httpProxyListener(families, httpProxyPort(tools, traits), settings);
  const chains = { ctx, rules, scope: traits.scope, settings, sourceLabels: traits.sourceLabels, ruleLabels: traits.ruleLabels };
  return outboundListener({
    name,
    slots: index.slots({ index: keyOf(traits), name }),
    settings,
    scope,
    sniff: ctx.settings.sniffOutbound,
    tcpChains: (slot) => tcpChains(chains, slot),
  });
}

const httpProxyPort = ({ ctx }: ListenerTools, traits: OutboundTraits): number => traits.httpProxyPort || (ctx.inputs.mesh.get("mesh")?.proxyHttpPort ?? 0);
