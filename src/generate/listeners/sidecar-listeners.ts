import type { Query } from "../../engine/index.ts";
import type { ListenerInput } from "../../envoy/listener/listener.ts";
import type { Interception, ProxyView } from "../../model/proxy.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import type { ScopeKey } from "../context.ts";
import { createCollector, objectsBehind, sameResourceSet } from "../resource-set.ts";
import { inboundListeners } from "./inbound/inbound-listeners.ts";
import { defineInboundPorts, type PortsQuery } from "./inbound/inbound-ports.ts";
import { defineMtlsModes } from "./inbound/mtls-mode.ts";
import type { ListenerSource, ListenerTools } from "./listener-source.ts";
import { defineL4Rules } from "./outbound/l4-rules.ts";
import { defineListenerIndex, type IndexQuery, type ListenerIndex } from "./outbound/listener-index.ts";
import { outboundListener } from "./outbound/outbound-listener.ts";
import { defineSlots, type PlacementTraits } from "./outbound/slots.ts";
import { tcpChains } from "./outbound/tcp-chains.ts";
import { httpProxyListener, virtualOutbound } from "./outbound/virtual-outbound.ts";
import { canonical, familiesOf, type Families, type SettingsTraits } from "./traits.ts";

/** Attributes of a sidecar that decide its outbound listeners: those who agree on them share all. */
interface OutboundTraits extends ScopeKey, PlacementTraits, SettingsTraits {
  readonly transparent: boolean;
  readonly httpProxyPort: number;
  /** Of the labels, those that TCP or TLS rules of the scope match by. */
  readonly sourceLabels: Readonly<Record<string, string>>;
  /** All labels, where DestinationRules of the namespace select by them. */
  readonly ruleLabels: Readonly<Record<string, string>> | undefined;
}

/** Attributes of a sidecar that decide its inbound listeners. Only ports are looked up by address; the rest is shared more widely. */
interface InboundTraits extends PortsQuery, SettingsTraits {
  readonly families: Families;
  readonly interception: Interception;
  readonly labels: Readonly<Record<string, string>>;
  readonly hasIdentity: boolean;
}

interface SetKey {
  readonly outbound: OutboundTraits;
  readonly inbound: readonly ListenerInput[];
  /** Addresses of the proxy itself: what it sends to its own endpoints of a headless service must not come back to it. */
  readonly own: readonly string[];
}

/** The names of outbound listeners in a scope that is not a service's: they stand beside those of services. */
const VIRTUAL_OUTBOUND = "virtualOutbound";
const HTTP_PROXY = "http_proxy";

/** Listeners of a sidecar: the outbound ones of its scope, and the inbound ones of its workload. */
export function defineSidecarListeners(tools: ListenerTools): (view: ProxyView) => ListenerSource {
  const { ctx, built } = tools;
  const rules = defineL4Rules(ctx);
  const index = defineListenerIndex(ctx, defineSlots(ctx));
  const outbound = defineOutbound(tools, rules, index);
  const inbound = defineInbound(tools);
  const ownEndpoints = defineOwnEndpoints(tools, index);
  const namesOf = (traits: OutboundTraits): readonly string[] => [
    ...(traits.bindsPorts ? [] : [VIRTUAL_OUTBOUND]),
    ...(httpProxyPort(tools, traits) > 0 ? [HTTP_PROXY] : []),
    ...index.names(placementOf(traits)),
  ];
  const set = ctx.engine.query<SetKey, ResourceSet>({
    name: "sidecarListeners",
    id: canonical,
    same: sameResourceSet,
    compute: (key) => {
      const collector = createCollector();
      for (const input of key.inbound) collector.take(input.name, built.try(input));
      for (const name of namesOf(key.outbound).filter((one) => !key.own.includes(one))) {
        const result = outbound.try({ traits: key.outbound, name });
        if (!result.ok) collector.fail(name, result.error.message);
        else if (result.value !== undefined) collector.add(result.value);
      }
      return collector.set;
    },
  });
  return (view) => {
    const settings = tools.settingsTraits(view);
    const traits = outboundTraits(tools, view, settings, rules.sourceLabelKeys);
    const inboundKey = inboundTraits(view, settings);
    return {
      *steps() {
        for (const name of namesOf(traits)) yield () => void outbound.try({ traits, name });
      },
      set: () => set({ outbound: traits, inbound: inbound(inboundKey), own: ownEndpoints({ index: placementOf(traits), addresses: view.addresses }) }),
      provenance: (name) =>
        inbound(inboundKey).some((input) => input.name === name)
          ? objectsBehind(ctx.engine, inbound, inboundKey)
          : objectsBehind(ctx.engine, outbound, { traits, name }),
    };
  };
}

function outboundTraits(
  { ctx }: ListenerTools,
  view: ProxyView,
  ...[settings, labelKeys]: [settings: SettingsTraits, labelKeys: Query<ScopeKey, readonly string[]>]
): OutboundTraits {
  const scope = { namespace: view.namespace, sidecar: view.sidecar };
  return {
    ...scope,
    ...settings,
    families: familiesOf(view),
    bindsPorts: view.interception === "NONE",
    transparent: view.interception === "TPROXY",
    dnsCapture: view.dnsCapture,
    unprivileged: view.metadata.unprivilegedPod,
    httpProxyPort: view.metadata.httpProxyPort,
    sourceLabels: Object.fromEntries(labelKeys(scope).flatMap((key) => (view.labels[key] === undefined ? [] : [[key, view.labels[key]]]))),
    ruleLabels: ctx.lookups.hasSelectiveDestinationRules(view.namespace) ? view.labels : undefined,
  };
}

const inboundTraits = (view: ProxyView, settings: SettingsTraits): InboundTraits => ({
  ...settings,
  namespace: view.namespace,
  sidecar: view.sidecar,
  interception: view.interception,
  addresses: view.addresses,
  families: familiesOf(view),
  labels: view.labels,
  hasIdentity: view.hasIdentity,
});

const placementOf = ({ namespace, sidecar, families, bindsPorts, dnsCapture, unprivileged }: OutboundTraits): IndexQuery => ({
  namespace,
  sidecar,
  families,
  bindsPorts,
  dnsCapture,
  unprivileged,
});

const httpProxyPort = ({ ctx }: ListenerTools, traits: OutboundTraits): number => traits.httpProxyPort || (ctx.inputs.mesh.get("mesh")?.proxyHttpPort ?? 0);

function defineOutbound(
  tools: ListenerTools,
  ...[rules, index]: [rules: ReturnType<typeof defineL4Rules>, index: ListenerIndex]
): Query<{ readonly traits: OutboundTraits; readonly name: string }, Encoded | undefined> {
  const { ctx, built } = tools;
  const inputOf = ({ traits, name }: { readonly traits: OutboundTraits; readonly name: string }): ListenerInput | undefined => {
    const key = { namespace: traits.namespace, sidecar: traits.sidecar };
    const { telemetry, proxyConfig, idleTimeout, acceptHttp10, tracingService } = traits;
    const settings = tools.settings({ telemetry, proxyConfig, idleTimeout, acceptHttp10, tracingService, side: "client" });
    const { outboundPolicy, egressProxy } = ctx.lookups.scope(key);
    const scope = { outboundPolicy, egressProxy };
    if (name === VIRTUAL_OUTBOUND) {
      return virtualOutbound({ families: traits.families, transparent: traits.transparent, port: ctx.inputs.mesh.get("mesh")?.proxyListenPort ?? 15001, scope, settings });
    }
    if (name === HTTP_PROXY) return httpProxyListener(traits.families, httpProxyPort(tools, traits), settings);
    const chains = { ctx, rules, scope: key, settings, sourceLabels: traits.sourceLabels, ruleLabels: traits.ruleLabels };
    return outboundListener({
      name,
      slots: index.slots({ index: placementOf(traits), name }),
      settings,
      scope,
      sniff: ctx.settings.sniffOutbound,
      tcpChains: (slot) => tcpChains(chains, slot),
    });
  };
  return ctx.engine.query<{ readonly traits: OutboundTraits; readonly name: string }, Encoded | undefined>({
    name: "outboundListener",
    id: ({ traits, name }) => `${name}#${canonical(traits)}`,
    same: (a, b) => a === b,
    compute: (key) => {
      const input = inputOf(key);
      return input === undefined ? undefined : built(input);
    },
  });
}

function defineInbound(tools: ListenerTools): Query<InboundTraits, readonly ListenerInput[]> {
  const { ctx } = tools;
  const portsOf = defineInboundPorts(ctx);
  const modesOf = defineMtlsModes(ctx);
  return ctx.engine.query<InboundTraits, readonly ListenerInput[]>({
    name: "inboundListeners",
    id: canonical,
    compute: (traits) => {
      const { namespace, sidecar, interception, addresses, labels, telemetry, proxyConfig, idleTimeout, acceptHttp10, tracingService } = traits;
      const mesh = ctx.inputs.mesh.get("mesh");
      if (mesh === undefined) throw new Error("there is no MeshConfig");
      const settings = tools.settings({ telemetry, proxyConfig, idleTimeout, acceptHttp10, tracingService, side: "server" });
      // A workload without a certificate cannot end mutual TLS, whatever policies say.
      const modes = traits.hasIdentity ? modesOf({ namespace, labels }) : { mode: "disable" as const, ports: [] };
      return inboundListeners({ families: traits.families, interception, ports: portsOf({ namespace, sidecar, interception, addresses }), modes, settings, mesh });
    },
  });
}

/** Listeners for endpoints of headless services that are the proxy itself. Most proxies have none, and share one set. */
function defineOwnEndpoints(
  { ctx }: ListenerTools,
  index: ListenerIndex,
): Query<{ readonly index: IndexQuery; readonly addresses: readonly string[] }, readonly string[]> {
  return ctx.engine.query<{ readonly index: IndexQuery; readonly addresses: readonly string[] }, readonly string[]>({
    name: "ownHeadlessListeners",
    id: canonical,
    compute: ({ index: query, addresses }) =>
      index.names(query).filter((name) => {
        const address = addresses.find((one) => name.startsWith(`${one}_`));
        return address !== undefined && index.slots({ index: query, name }).every(({ endpoint }) => endpoint === address);
      }),
  });
}
