import type { ProxyView } from "../../model/proxy.ts";
import { CLUSTER_TYPE, LISTENER_TYPE } from "../../wire/type-urls.ts";
import type { ResourceProvider } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import { keyListId } from "../lookups/key-list.ts";
import { policyChoiceOf } from "../policies/policy-choice.ts";
import { definePolicyFilters } from "../policies/policy-filters.ts";
import { ahead, definePrepareFirst } from "../prepare-first.ts";
import { defineBuiltListener } from "./built-listener.ts";
import { defineGatewayListeners } from "./gateway/gateway-listeners.ts";
import type { ListenerSource } from "./listener-source.ts";
import { defineChainSettings } from "./settings/chain-settings.ts";
import { defineSettingsTraits } from "./settings/settings-traits.ts";
import { telemetryChoiceOf } from "./settings/telemetry.ts";
import { defineSidecarListeners } from "./sidecar-listeners.ts";

/** Listeners of sidecars and routers. They refer to clusters, so they are sent after them. */
export function createListenerProvider(ctx: GenerateContext): ResourceProvider {
  const shared = {
    ctx,
    built: defineBuiltListener(ctx),
    settings: defineChainSettings(ctx),
    settingsTraits: defineSettingsTraits(ctx, telemetryChoiceOf(ctx)),
    policiesFor: policyChoiceOf(ctx),
    policyFilters: definePolicyFilters(ctx),
  };
  const sidecar = defineSidecarListeners(shared);
  const router = defineGatewayListeners(shared);
  const sourceOf = (view: ProxyView): ListenerSource => (view.type === "sidecar" ? sidecar(view) : router(view));
  const prepareFirst = definePrepareFirst();
  return {
    typeUrl: LISTENER_TYPE,
    sendAfter: [CLUSTER_TYPE],
    *prepare(view) {
      // All rules of a scope are looked into before it is known which listeners it has.
      for (const rules of view.type === "sidecar" ? rulesOf(ctx, view) : [])
        yield* prepareFirst({ id: keyListId(rules), steps: () => ruleSteps(ctx, rules), make: () => rules });
      for (const step of sourceOf(view).steps()) {
        step();
        yield;
      }
    },
    isLastResult: ({ type }) => type === "sidecar",
    offered: (view) => sourceOf(view).set(),
    provenance: (view, name) => sourceOf(view).provenance(name),
  };
}

/** Keys of the VirtualServices that a sidecar sees, by egress listener. Most namespaces see the same. */
const rulesOf = ({ lookups }: GenerateContext, { namespace, sidecar }: ProxyView): readonly (readonly string[])[] =>
  ahead(() => lookups.scope({ namespace, sidecar }))?.egress.map(({ virtualServices }) => virtualServices) ?? [];

function* ruleSteps({ lookups }: GenerateContext, keys: readonly string[]): Iterable<void> {
  for (const key of keys) {
    ahead(() => lookups.virtualService(key));
    yield;
  }
}
