import type { Registry } from "@bufbuild/protobuf";
import type { GenerateContext } from "../context.ts";
import { gatewayQueryOf } from "../lookups/merged-gateway.ts";
import type { CompiledFilter } from "./compile.ts";
import { clusterRules, extensionRules, listenerRules, routeRules } from "./kinds.ts";
import { type LeftOut, PatchedKind } from "./patched-kind.ts";
import { definePlans, type Plans } from "./plan.ts";
import { virtualHostRules } from "./virtual-host-rules.ts";

/** EnvoyFilters, put into effect. */
export interface Patches {
  /** Which patches are for which proxies. */
  readonly plans: Plans;
  readonly clusters: PatchedKind;
  readonly listeners: PatchedKind;
  readonly routes: PatchedKind;
  readonly virtualHosts: PatchedKind;
  readonly extensions: PatchedKind;
  /** All EnvoyFilters in force. */
  filters(): readonly CompiledFilter[];
  /** Gives the descriptors that patches are read with. Must have happened before a proxy is served while EnvoyFilters are in force. */
  use(descriptors: Registry): void;
}

/** Sets up patching on an engine; `tell` is told of patches that are left out. In a mesh without EnvoyFilters it costs one look-up per answer, and nothing is loaded for it. */
export function createPatches(ctx: GenerateContext, tell: (fault: LeftOut) => void = () => {}): Patches {
  const { engine, inputs } = ctx;
  const descriptors = engine.table<Registry>({ name: "descriptors" });
  const plans = definePlans(ctx, descriptors);
  return {
    plans,
    clusters: new PatchedKind(clusterRules, tell),
    listeners: new PatchedKind(listenerRules, tell),
    routes: new PatchedKind(
      routeRules((view) => gatewayQueryOf(ctx, view).targetPorts),
      tell,
    ),
    virtualHosts: new PatchedKind(virtualHostRules, tell),
    extensions: new PatchedKind(extensionRules, tell),
    filters: () => inputs.objects.keys("kind", "EnvoyFilter").flatMap((key) => plans.compiled(key) ?? []),
    use: (registry) => descriptors.set("all", registry),
  };
}
