import type { ProxyView } from "../../model/proxy.ts";
import { CLUSTER_TYPE, LISTENER_TYPE } from "../../wire/type-urls.ts";
import type { ResourceProvider } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import { policyChoiceOf } from "../policies/policy-choice.ts";
import { definePolicyFilters } from "../policies/policy-filters.ts";
import { defineBuiltListener } from "./built-listener.ts";
import { defineGatewayListeners } from "./gateway/gateway-listeners.ts";
import type { ListenerSource } from "./listener-source.ts";
import { defineChainSettings } from "./settings/chain-settings.ts";
import { defineSettingsTraits } from "./settings/settings-traits.ts";
import { defineTelemetryChoice } from "./settings/telemetry.ts";
import { defineSidecarListeners } from "./sidecar-listeners.ts";

/** Listeners of sidecars and routers. They refer to clusters, so they are sent after them. */
export function createListenerProvider(ctx: GenerateContext): ResourceProvider {
  const shared = {
    ctx,
    built: defineBuiltListener(ctx),
    settings: defineChainSettings(ctx),
    settingsTraits: defineSettingsTraits(ctx, defineTelemetryChoice(ctx)),
    policiesFor: policyChoiceOf(ctx),
    policyFilters: definePolicyFilters(ctx),
  };
  const sidecar = defineSidecarListeners(shared);
  const router = defineGatewayListeners(shared);
  const sourceOf = (view: ProxyView): ListenerSource => (view.type === "sidecar" ? sidecar(view) : router(view));
  return {
    typeUrl: LISTENER_TYPE,
    sendAfter: [CLUSTER_TYPE],
    *prepare(view) {
      for (const step of sourceOf(view).steps()) {
        step();
        yield;
      }
    },
    offered: (view) => sourceOf(view).set(),
    provenance: (view, name) => sourceOf(view).provenance(name),
  };
}
