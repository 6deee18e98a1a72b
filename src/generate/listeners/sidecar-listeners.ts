import type { Result } from "../../engine/index.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { createCollector, layered, policiesBehind, sameResourceSet } from "../resource-set.ts";
import { defineInbound, type Inbound, inboundTraits } from "./inbound/inbound.ts";
import type { ListenerSource, ListenerTools } from "./listener-source.ts";
import { defineOutbound } from "./outbound/outbound.ts";
import type { OutboundTraits } from "./outbound/outbound-traits.ts";

/** Inbound listeners, or why there are none: a fault there must not cost the outbound ones. */
type InboundPart = { readonly id: string; readonly listeners: readonly Encoded[]; readonly fault?: string };

interface SetKey {
  readonly outbound: OutboundTraits;
  readonly inbound: InboundPart;
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
    compute: ({ outbound: traits, inbound: { listeners, fault }, without }) => {
      const own = createCollector();
      for (const listener of listeners) own.add(listener);
      if (fault !== undefined) own.fail("virtualInbound", fault);
      // Where a Sidecar binds an ingress and an egress listener to one address, the ingress listener has it.
      const shared = outbound.set(traits);
      const taken = listeners.map(({ name }) => name).filter((name) => shared.resources.has(name));
      return layered(omit(shared, [...without, ...taken]), own.set);
    },
  });
  return (view) => {
    const settings = tools.settingsTraits(view);
    const traits = outbound.traitsOf(view, settings);
    const inboundKey = inboundTraits(view, settings);
    return {
      *steps() {
        for (const _ of outbound.steps(traits)) yield () => {};
        for (const name of outbound.names(traits)) yield () => void outbound.listener.try(outbound.listenerKey(traits, name));
      },
      set: () =>
        set({ outbound: traits, inbound: partOf(inbound.try(inboundKey)), without: outbound.ownEndpoints(traits, view.addresses) }),
      provenance: (name) =>
        inbound(inboundKey).listeners.some((listener) => listener.name === name)
          ? inboundProvenance(inbound(inboundKey), policiesBehind(ctx, inbound, inboundKey))
          : outbound.provenance(traits, name),
    };
  };
}

/** Of security policies all of a namespace are read, but only those that apply made the listener what it is. */
const inboundProvenance = ({ services, policies }: Inbound, behind: readonly string[]): readonly string[] => [
  ...services,
  ...behind.filter((key) => !/^(AuthorizationPolicy|RequestAuthentication)\//.test(key)),
  ...policies,
];

const partOf = (result: Result<Inbound>): InboundPart =>
  result.ok ? result.value : { id: `fault: ${result.error.message}`, listeners: [], fault: result.error.message };

function omit(set: ResourceSet, names: readonly string[]): ResourceSet {
  return names.length === 0 ? set : { ...set, resources: new Map([...set.resources].filter(([name]) => !names.includes(name))) };
}
