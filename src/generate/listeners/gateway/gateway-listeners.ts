import { contentHash } from "../../../base/hash.ts";
import type { Query } from "../../../engine/index.ts";
import type { ListenerInput } from "../../../envoy/listener/listener.ts";
import type { CredentialHolder } from "../../../envoy/tls/index.ts";
import type { CertificateFiles, LocalServer, ProxyView } from "../../../model/proxy.ts";
import type { Encoded, ResourceSet } from "../../../wire/encoded.ts";
import type { GatewayPort, GatewayQuery } from "../../context.ts";
import { gatewayQueryOf } from "../../lookups/merged-gateway.ts";
import type { PolicyKeys } from "../../policies/policy-choice.ts";
import { createCollector, sameResourceSet } from "../../resource-set.ts";
import type { ListenerSource, ListenerTools } from "../listener-source.ts";
import { reservedPorts } from "../reserved-ports.ts";
import { providerLookup } from "../settings/provider-target.ts";
import { boundFamilies, canonical, type Families, familiesOf, type SettingsTraits } from "../traits.ts";
import { gatewayListener, gatewayListenerName, quicListener, quicListenerName } from "./gateway-listener.ts";

/** Attributes of a router that decide its listeners. */
interface GatewayTraits {
  /** Stands for all the rest. */
  readonly id: string;
  readonly settings: SettingsTraits;
  readonly policies: PolicyKeys;
  readonly query: GatewayQuery;
  readonly families: Families;
  readonly unprivileged: boolean;
  readonly hasIdentity: LocalServer;
  readonly serverFiles: CertificateFiles | undefined;
  readonly credentialSocket: boolean;
  readonly bootstrapPorts: readonly number[];
  /** To Istio a gateway's listeners are outbound. QUIC has none of it: a connection stays with the worker that its packets come to. */
  readonly exactBalance: boolean;
}

interface ListenerKey {
  readonly traits: GatewayTraits;
  readonly name: string;
}

/** Listeners of a router: one per port of the Gateways that select it. A router that nothing selects has none. */
export function defineGatewayListeners(tools: ListenerTools): (view: ProxyView) => ListenerSource {
  const { ctx } = tools;
  const listener = defineListener(tools);
  const namesOf = ({ query, families, unprivileged, bootstrapPorts }: GatewayTraits): readonly string[] =>
    ctx.lookups
      .mergedGateway(query)
      .ports.filter(({ port, bind }) => (!unprivileged || port >= 1024) && (bind !== "" || !reservedPorts(ctx, bootstrapPorts).has(port)))
      .flatMap((port) => {
        const name = gatewayListenerName(port, families);
        return port.servers.some(({ http3 }) => http3) ? [name, quicListenerName(name)] : [name];
      });
  const set = ctx.engine.query<GatewayTraits, ResourceSet>({
    name: "gatewayListeners",
    id: ({ id }) => id,
    same: sameResourceSet,
    compute: (traits) => {
      const collector = createCollector();
      for (const name of namesOf(traits)) {
        const result = listener.try({ traits, name });
        if (!result.ok) collector.fail(name, result.error.message);
        else if (result.value !== undefined) collector.add(result.value);
      }
      return collector.set;
    },
  });
  return (view) => {
    const parts = {
      settings: tools.settingsTraits(view),
      policies: tools.policiesFor(view),
      query: gatewayQueryOf(ctx, view),
      families: boundFamilies(familiesOf(view), ctx.settings.dualStack),
      unprivileged: view.metadata.unprivilegedPod,
      hasIdentity: view.hasIdentity,
      serverFiles: view.metadata.serverFiles,
      credentialSocket: view.metadata.credentialSocket,
      bootstrapPorts: view.metadata.bootstrapPorts,
      exactBalance: view.metadata.exactBalance.outbound,
    };
    const traits: GatewayTraits = { ...parts, id: contentHash(canonical(parts)) };
    return {
      *steps() {
        for (const name of namesOf(traits)) yield () => void listener.try({ traits, name });
      },
      set: () => set(traits),
      provenance: (name) => provenanceOf(tools, traits, name),
    };
  };
}

function defineListener(tools: ListenerTools): Query<ListenerKey, Encoded | undefined> {
  const { ctx, built } = tools;
  const inputOf = ({ traits, name }: ListenerKey): ListenerInput | undefined => {
    const { query, families, hasIdentity, serverFiles } = traits;
    const port = portOf(ctx, traits, name);
    if (port === undefined) return undefined;
    const build = name === gatewayListenerName(port, families) ? gatewayListener : quicListener;
    const settings = tools.settings({ ...traits.settings, side: "gateway" });
    const ruleLabels = ctx.lookups.hasSelectiveDestinationRules(query.namespace) ? query.labels : undefined;
    const input = build({
      ctx,
      client: { namespace: query.namespace, ruleLabels },
      families,
      hasIdentity,
      serverFiles,
      holder: { socket: traits.credentialSocket, ...credentialProvider(ctx, traits.settings.unreachable) },
      settings,
      mesh: ctx.inputs.mesh.get("mesh"),
      policies: tools.policyFilters({ ...traits.policies, gateway: true }),
      port,
    });
    return traits.exactBalance && input !== undefined && build === gatewayListener ? { ...input, exactBalance: true } : input;
  };
  return ctx.engine.query<ListenerKey, Encoded | undefined>({
    name: "gatewayListener",
    id: ({ traits, name }) => `${traits.id}#${name}`,
    same: (a, b) => a === b,
    compute: (key) => {
      const input = inputOf(key);
      return input === undefined ? undefined : built(input);
    },
  });
}

/** The SDS server that the mesh names: the first of its providers that is one and can be reached. */
function credentialProvider(ctx: ListenerTools["ctx"], unreachable: readonly string[]): Pick<CredentialHolder, "provider"> {
  const lookup = providerLookup(ctx, unreachable);
  for (const { provider } of ctx.inputs.mesh.get("mesh")?.extensionProviders ?? []) {
    const target = provider.case === "sds" ? lookup(provider.value.service, provider.value.port) : undefined;
    if (target !== undefined) return { provider: { cluster: target.cluster, authority: target.host } };
  }
  return {};
}

function portOf(
  { lookups }: ListenerTools["ctx"],
  { query, families }: Pick<GatewayTraits, "query" | "families">,
  name: string,
): GatewayPort | undefined {
  return lookups.mergedGateway(query).ports.find((one) => {
    const own = gatewayListenerName(one, families);
    return own === name || quicListenerName(own) === name;
  });
}

/** The Gateways whose servers stand on the port, and the VirtualServices that say where their connections go. */
function provenanceOf({ ctx }: ListenerTools, { query, families, settings, policies }: GatewayTraits, name: string): readonly string[] {
  const port = portOf(ctx, { query, families }, name);
  if (port === undefined) return [];
  const gateways = [...new Set(port.servers.map(({ gateway }) => gateway))];
  const routes = port.kind === "http" ? [] : gateways.flatMap((gateway) => ctx.lookups.gatewayVirtualServices(gateway, query.namespace));
  return [
    ...new Set([
      ...gateways.map((gateway) => `Gateway/${gateway}`),
      ...routes,
      ...settings.telemetry,
      ...policies.authentication,
      ...policies.authorization,
    ]),
  ];
}
