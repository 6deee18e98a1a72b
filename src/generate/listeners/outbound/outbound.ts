import type { Query } from "../../../engine/index.ts";
import type { ListenerInput } from "../../../envoy/listener/listener.ts";
import type { ProxyView } from "../../../model/proxy.ts";
import type { Encoded, ResourceSet } from "../../../wire/encoded.ts";
import { createCollector, policiesBehind, sameResourceSet } from "../../resource-set.ts";
import type { ListenerTools } from "../listener-source.ts";
import { boundFamilies, lookupFamily, type SettingsTraits } from "../traits.ts";
import { defineL4Rules, type L4Rules } from "./l4-rules.ts";
import { defineListenerIndex, type IndexKey, type SlotGroup } from "./listener-index.ts";
import { outboundListener } from "./outbound-listener.ts";
import { type OutboundTraits, outboundTraits } from "./outbound-traits.ts";
import { defineSlots, type Slot } from "./slots.ts";
import { tcpChains } from "./tcp-chains.ts";
import { httpProxyListener, virtualOutbound } from "./virtual-outbound.ts";

/** One listener, with all that stands on it: so its query reads what it is made from, and nothing of how that was found. */
interface ListenerKey {
  readonly traits: OutboundTraits;
  readonly name: string;
  readonly group: SlotGroup;
  /** Keys of the VirtualServices with TCP or TLS rules for each slot, in the order of the slots; none where all are HTTP. */
  readonly rules: readonly (readonly string[])[];
}

/** Names under which the listeners that belong to no service are asked for here. */
const VIRTUAL_OUTBOUND = "virtualOutbound";
const HTTP_PROXY = "http_proxy";
const isService = (name: string): boolean => name !== VIRTUAL_OUTBOUND && name !== HTTP_PROXY;
const NO_SLOTS: SlotGroup = { id: "", slots: [], isHttp: true };
const NO_RULES: ListenerKey["rules"] = [];

/** The outbound listeners of scopes. */
export interface Outbound {
  traitsOf(view: ProxyView, settings: SettingsTraits): OutboundTraits;
  /** The work behind `names` in small steps. */
  steps(traits: OutboundTraits): Iterable<void>;
  names(traits: OutboundTraits): readonly string[];
  readonly listener: Query<ListenerKey, Encoded | undefined>;
  listenerKey(traits: OutboundTraits, name: string): ListenerKey;
  /**
   * Objects a listener was made from: what its query read, and the services that stand on it. An HTTP listener is the same whichever
   * services those are, so it does not read them, but without them there would be none.
   */
  provenance(traits: OutboundTraits, name: string): readonly string[];
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
  const listener = defineListener(tools);
  const listenerKey = (traits: OutboundTraits, name: string): ListenerKey => {
    const group = isService(name) ? index.group({ index: keyOf(traits), name }) : NO_SLOTS;
    return { traits, name, group, rules: rulesOf(group, traits.scope, rules) };
  };
  return {
    traitsOf: (view, settings) => outboundTraits({ ctx, sourceLabelKeys: rules.sourceLabelKeys }, view, settings),
    steps: (traits) => index.steps(keyOf(traits)),
    names,
    listener,
    listenerKey,
    set: ctx.engine.query<OutboundTraits, ResourceSet>({
      name: "outboundListeners",
      id: ({ id }) => id,
      same: sameResourceSet,
      compute: (traits) => {
        const collector = createCollector();
        for (const name of names(traits)) {
          const result = listener.try(listenerKey(traits, name));
          if (!result.ok) collector.fail(name, result.error.message);
          else if (result.value !== undefined) collector.add(result.value);
        }
        return collector.set;
      },
    }),
    provenance: (traits, name) => {
      const key = listenerKey(traits, name);
      const services = key.group.slots.flatMap(({ service }) => ctx.registry.service(service)?.objectKey ?? []);
      return [
        ...new Set([
          ...(traits.scope.sidecar === undefined ? [] : [traits.scope.sidecar]),
          ...services,
          ...policiesBehind(ctx, listener, key),
        ]),
      ];
    },
    ownEndpoints: (traits, addresses) =>
      index
        .ofEndpoints(keyOf(traits))
        .filter(({ address }) => addresses.includes(address))
        .map(({ name }) => name),
  };
}

/** Thousands of HTTP services share a listener, and every proxy asks for it: then nothing is looked up. */
const rulesOf = (
  { slots, isHttp }: SlotGroup,
  scope: OutboundTraits["scope"],
  { forHost }: Pick<L4Rules, "forHost">,
): ListenerKey["rules"] =>
  isHttp ? NO_RULES : slots.map((slot) => (slot.kind === "http" ? [] : forHost({ ...scope, egress: slot.egress }, slot.service.host)));

function defineListener(tools: ListenerTools): Query<ListenerKey, Encoded | undefined> {
  return tools.ctx.engine.query<ListenerKey, Encoded | undefined>({
    name: "outboundListener",
    id: ({ traits, name, group, rules }) => `${traits.id}#${name}#${group.id}#${rules.flat().length === 0 ? "" : JSON.stringify(rules)}`,
    same: (a, b) => a === b,
    compute: (key) => {
      const input = inputOf(tools, key);
      if (input === undefined) return undefined;
      // Connections are balanced where they end up, not where they are handed on from.
      return tools.built(key.traits.exactBalance && key.name !== VIRTUAL_OUTBOUND ? { ...input, exactBalance: true } : input);
    },
  });
}

function inputOf(tools: ListenerTools, { traits, name, group: { slots }, rules }: ListenerKey): ListenerInput | undefined {
  const { ctx } = tools;
  const { policy, sourceLabels, ruleLabels } = traits;
  const { families } = traits.placement;
  const settings = tools.settings({ ...traits.settings, side: "client" });
  const common = { scope: policy, settings, lookupFamily: lookupFamily(families, ctx.settings.dualStack) };
  if (name === VIRTUAL_OUTBOUND) {
    const port = ctx.inputs.mesh.get("mesh")?.proxyListenPort ?? 15001;
    return virtualOutbound({
      families: boundFamilies(families, ctx.settings.dualStack),
      transparent: traits.transparent,
      port,
      ...common,
    });
  }
  if (name === HTTP_PROXY) return httpProxyListener({ families, port: httpProxyPort(tools, traits), ...common });
  const rulesFor = (slot: Slot): readonly string[] => rules[slots.indexOf(slot)] ?? [];
  const chains = { ctx, rulesFor, namespace: traits.scope.namespace, sourceLabels, ruleLabels, ...common };
  return outboundListener({
    name,
    slots,
    ...common,
    sniff: ctx.settings.sniffOutbound,
    tcpChains: (slot) => tcpChains(chains, slot),
  });
}

const httpProxyPort = ({ ctx }: ListenerTools, traits: OutboundTraits): number =>
  traits.httpProxyPort || (ctx.inputs.mesh.get("mesh")?.proxyHttpPort ?? 0);
