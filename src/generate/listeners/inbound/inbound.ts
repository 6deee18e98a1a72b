import { contentHash } from "../../../base/hash.ts";
import type { Query } from "../../../engine/index.ts";
import type { ProxyView } from "../../../model/proxy.ts";
import type { Encoded } from "../../../wire/encoded.ts";
import type { ListenerTools } from "../listener-source.ts";
import { canonical, type Families, familiesOf, type SettingsTraits } from "../traits.ts";
import { inboundListeners } from "./inbound-listeners.ts";
import { defineInboundPorts, type PortsQuery } from "./inbound-ports.ts";
import { defineMtlsModes } from "./mtls-mode.ts";

/** Attributes of a sidecar that decide its inbound listeners. */
export interface InboundTraits {
  readonly ports: PortsQuery;
  readonly settings: SettingsTraits;
  readonly families: Families;
  readonly labels: Readonly<Record<string, string>>;
  readonly hasIdentity: boolean;
}

export const inboundTraits = (view: ProxyView, settings: SettingsTraits): InboundTraits => ({
  settings,
  ports: { namespace: view.namespace, sidecar: view.sidecar, interception: view.interception, addresses: view.addresses },
  families: familiesOf(view),
  labels: view.labels,
  hasIdentity: view.hasIdentity,
});

/** Inbound listeners of one workload. `id` stands for them: replicas have different addresses, but the same listeners. */
export interface Inbound {
  readonly id: string;
  readonly listeners: readonly Encoded[];
  /** Keys of the objects whose services are served here. */
  readonly services: readonly string[];
}

/**
 * Asked for by address, since which ports a workload serves is known by address; what is built from them is keyed by content, so the
 * thousandth replica costs this look-up and no more.
 */
export function defineInbound(tools: ListenerTools): Query<InboundTraits, Inbound> {
  const { ctx } = tools;
  const portsOf = defineInboundPorts(ctx);
  const modesOf = defineMtlsModes(ctx);
  return ctx.engine.query<InboundTraits, Inbound>({
    name: "inboundListeners",
    id: canonical,
    same: (a, b) => a.id === b.id && a.services.join() === b.services.join(),
    compute: ({ ports, settings, families, labels, hasIdentity }) => {
      const mesh = ctx.inputs.mesh.get("mesh");
      if (mesh === undefined) throw new Error("there is no MeshConfig");
      // A workload without a certificate cannot end mutual TLS, whatever policies say.
      const modes = hasIdentity ? modesOf({ namespace: ports.namespace, labels }) : { mode: "disable" as const, ports: [] };
      const served = portsOf(ports);
      const inputs = inboundListeners({
        families,
        interception: ports.interception,
        ports: served,
        modes,
        settings: tools.settings({ ...settings, side: "server" }),
        mesh,
      });
      const listeners = inputs.map((input) => tools.built(input));
      const services = [...new Set(served.flatMap(({ object }) => object ?? []))];
      return { id: contentHash(listeners.map(({ version }) => version).join()), listeners, services };
    },
  });
}
