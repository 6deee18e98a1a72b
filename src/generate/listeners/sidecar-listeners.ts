import type { ProxyView } from "../../model/proxy.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { createCollector, objectsBehind, sameResourceSet } from "../resource-set.ts";
import { defineInbound, inboundTraits } from "./inbound/inbound.ts";
import type { ListenerSource, ListenerTools } from "./listener-source.ts";
import { defineOutbound } from "./outbound/outbound.ts";
import type { OutboundTraits } from "./outbound/outbound-traits.ts";

interface SetKey {
  readonly outbound: OutboundTraits;
  readonly inbound: { readonly id: string; readonly listeners: readonly Encoded[] };
  /** Listeners of the scope that this proxy does without: see `ownEndpoints`. */
  readonly without: readonly string[];
}

/** Listeners of a sidecar: the outbound ones of its scope, and the inbound ones of its workload. Replicas agree on both and share one set. */
export function defineSidecarListeners(tools: ListenerTools): (view: ProxyView) => ListenerSource {
  const { ctx } = tools;
  const outbound = defineOutbound(tools);
  const inbound = defineInbound(tools);
  const set = ctx.engine.query<SetKey, ResourceSet>({
    name: "sidecarListeners",
    id: ({ outbound: { id }, inbound: { id: inboundId }, without }) => [id, inboundId, ...without].join("|"),
    same: sameResourceSet,
    compute: ({ outbound: traits, inbound: { listeners }, without }) => {
      const collector = createCollector();
      for (const listener of listeners) collector.add(listener);
      const shared = outbound.set(traits);
      for (const [name, listener] of shared.resources) if (!without.includes(name)) collector.add(listener);
      for (const { name, message } of shared.failed) collector.fail(name, message);
      return collector.set;
    },
  });
  return (view) => {
    const settings = tools.settingsTraits(view);
    const traits = outbound.traitsOf(view, settings);
    const inboundKey = inboundTraits(view, settings);
    return {
      *steps() {
        for (const name of outbound.names(traits)) yield () => void outbound.listener.try(outbound.listenerKey(traits, name));
      },
      set: () => set({ outbound: traits, inbound: inbound(inboundKey), without: outbound.ownEndpoints(traits, view.addresses) }),
      provenance: (name) =>
        inbound(inboundKey).listeners.some((listener) => listener.name === name)
          ? objectsBehind(ctx.engine, inbound, inboundKey)
          : objectsBehind(ctx.engine, outbound.listener, outbound.listenerKey(traits, name)),
    };
  };
}
