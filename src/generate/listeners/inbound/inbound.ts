import { contentHash } from "../../../base/hash.ts";
import type { Query } from "../../../engine/index.ts";
import { standsAlone } from "../../../envoy/tls/index.ts";
import type { CertificateFiles, LocalServer, ProxyView } from "../../../model/proxy.ts";
import type { Encoded } from "../../../wire/encoded.ts";
import type { ListenerTools } from "../listener-source.ts";
import { boundFamilies, canonical, type Families, familiesOf, type SettingsTraits } from "../traits.ts";
import { inboundListeners } from "./inbound-listeners.ts";
import { defineInboundPorts, type PortsQuery } from "./inbound-ports.ts";
import { mtlsModesOf } from "./mtls-mode.ts";

/** Attributes of a sidecar that decide its inbound listeners. */
export interface InboundTraits {
  readonly ports: PortsQuery;
  readonly settings: SettingsTraits;
  readonly families: Families;
  readonly labels: Readonly<Record<string, string>>;
  readonly hasIdentity: LocalServer;
  readonly serverFiles: CertificateFiles | undefined;
  readonly exactBalance: boolean;
}

export const inboundTraits = (view: ProxyView, settings: SettingsTraits): InboundTraits => ({
  settings,
  ports: {
    namespace: view.namespace,
    sidecar: view.sidecar,
    interception: view.interception,
    addresses: view.addresses,
    remoteCluster: view.remoteCluster,
    pod: view.pod,
    claim: view.claim,
    hasIdentity: view.hasIdentity,
  },
  families: familiesOf(view),
  labels: view.labels,
  hasIdentity: view.hasIdentity,
  serverFiles: view.metadata.serverFiles,
  exactBalance: view.metadata.exactBalance.inbound,
});

/** Inbound listeners of one workload. `id` stands for them: replicas have different addresses, but the same listeners. */
export interface Inbound {
  readonly id: string;
  readonly listeners: readonly Encoded[];
  /** Keys of the objects whose services are served here. */
  readonly services: readonly string[];
  /** Keys of the security policies that apply here. */
  readonly policies: readonly string[];
}

/**
 * Asked for by address, since which ports a workload serves is known by address; what is built from them is keyed by content, so the
 * thousandth replica costs this look-up and no more.
 */
export function defineInbound(tools: ListenerTools): Query<InboundTraits, Inbound> {
  const { ctx } = tools;
  const portsOf = defineInboundPorts(ctx);
  const modesOf = mtlsModesOf(ctx);
  return ctx.engine.query<InboundTraits, Inbound>({
    name: "inboundListeners",
    id: canonical,
    same: (a, b) => a.id === b.id && a.services.join() === b.services.join() && a.policies.join() === b.policies.join(),
    compute: ({ ports, settings, families, labels, hasIdentity, serverFiles, exactBalance }) => {
      const mesh = ctx.inputs.mesh.get("mesh");
      if (mesh === undefined) throw new Error("there is no MeshConfig");
      // A workload without a certificate cannot end mutual TLS, whatever policies say.
      const modes =
        hasIdentity || standsAlone(serverFiles) ? modesOf({ namespace: ports.namespace, labels }) : { mode: "disable" as const, ports: [] };
      const served = portsOf(ports);
      const policies = tools.policiesFor({ namespace: ports.namespace, labels });
      const inputs = inboundListeners({
        families: boundFamilies(families, ctx.settings.dualStack),
        interception: ports.interception,
        ports: served,
        modes,
        settings: tools.settings({ ...settings, side: "server" }),
        policies: tools.policyFilters({ ...policies, gateway: false }),
        mesh,
        certificate: { files: serverFiles, agent: hasIdentity },
      });
      const listeners = inputs.map((input) => tools.built(exactBalance ? { ...input, exactBalance } : input));
      const services = [...new Set(served.flatMap(({ object }) => object ?? []))];
      return {
        id: contentHash(listeners.map(({ version }) => version).join()),
        listeners,
        services,
        policies: [...policies.authentication, ...policies.authorization],
      };
    },
  });
}
