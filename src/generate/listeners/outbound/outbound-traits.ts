import { contentHash } from "../../../base/hash.ts";
import type { Query } from "../../../engine/index.ts";
import type { ProxyView } from "../../../model/proxy.ts";
import type { GenerateContext, Scope, ScopeKey } from "../../context.ts";
import { canonical, familiesOf, type SettingsTraits } from "../traits.ts";
import type { PlacementTraits } from "./slots.ts";

/** Attributes of a sidecar that decide its outbound listeners: those who agree on them share all. */
export interface OutboundTraits {
  /** Stands for all the rest. */
  readonly id: string;
  readonly scope: ScopeKey;
  /** What becomes of traffic no service claims. */
  readonly policy: Pick<Scope, "outboundPolicy" | "egressProxy">;
  readonly placement: PlacementTraits;
  readonly settings: SettingsTraits;
  readonly transparent: boolean;
  readonly httpProxyPort: number;
  readonly exactBalance: boolean;
  /** Of the labels, those that TCP or TLS rules of the scope match by. */
  readonly sourceLabels: Readonly<Record<string, string>>;
  /** All labels, where DestinationRules of the namespace select by them. */
  readonly ruleLabels: Readonly<Record<string, string>> | undefined;
}

export interface TraitSources {
  readonly ctx: Pick<GenerateContext, "lookups">;
  readonly sourceLabelKeys: Query<ScopeKey, readonly string[]>;
}

/** Picks them from a proxy. Labels are looked at only as far as some rule does. */
export function outboundTraits({ ctx, sourceLabelKeys }: TraitSources, view: ProxyView, settings: SettingsTraits): OutboundTraits {
  const scope = { namespace: view.namespace, sidecar: view.sidecar };
  const { outboundPolicy, egressProxy } = ctx.lookups.scope(scope);
  const traits = {
    scope,
    policy: { outboundPolicy, egressProxy },
    settings,
    placement: {
      families: familiesOf(view),
      bindsPorts: view.interception === "NONE",
      dnsCapture: view.dnsCapture,
      remoteCluster: view.remoteCluster,
      unprivileged: view.metadata.unprivilegedPod,
      bootstrapPorts: view.metadata.bootstrapPorts,
    },
    transparent: view.interception === "TPROXY",
    httpProxyPort: view.metadata.httpProxyPort,
    exactBalance: view.metadata.exactBalance.outbound,
    sourceLabels: Object.fromEntries(
      sourceLabelKeys(scope).flatMap((key) => (view.labels[key] === undefined ? [] : [[key, view.labels[key]]])),
    ),
    ruleLabels: ctx.lookups.hasSelectiveDestinationRules(view.namespace) ? view.labels : undefined,
  };
  return { ...traits, id: contentHash(canonical(traits)) };
}
