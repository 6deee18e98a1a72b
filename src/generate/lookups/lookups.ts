import type { GenerateContext, Lookups } from "../context.ts";
import { definePrepareFirst } from "../prepare-first.ts";
import { defineDestinationRules } from "./destination-rules.ts";
import { defineExtensionChoice } from "./extension-choice.ts";
import { defineMergedGateway } from "./merged-gateway.ts";
import { defineScopes } from "./scopes.ts";
import { defineServiceAliases } from "./service-aliases.ts";
import { defineVirtualServices } from "./virtual-services.ts";
import { defineVisibleServices } from "./visible-services.ts";

/** Defines the look-ups that all generators share on an engine. */
export function createLookups(ctx: Omit<GenerateContext, "lookups">): Lookups {
  const services = defineVisibleServices(ctx);
  const virtualServices = defineVirtualServices(ctx);
  const rules = defineDestinationRules(ctx);
  const prepareFirst = definePrepareFirst();
  function* scopeSteps(): Iterable<void> {
    yield* services.steps();
    yield* virtualServices.steps();
    yield* rules.steps(ctx.registry.namespaces());
  }
  return {
    scope: defineScopes({ ctx, services, virtualServices }),
    scopeSteps: () => prepareFirst({ id: "", steps: scopeSteps, make: services.everyone }),
    virtualService: virtualServices.virtualService,
    gatewayVirtualServices: (gateway, namespace) => virtualServices.boundTo({ gateway, namespace }),
    mergedGateway: defineMergedGateway(ctx),
    visibleService: (host, namespace) => services.visibleService({ host, namespace }),
    extensionsFor: defineExtensionChoice(ctx),
    aliases: defineServiceAliases(ctx),
    destinationRule: rules.destinationRule,
    mergedDestinationRule: rules.mergedDestinationRule,
    destinationRuleKeys: rules.destinationRuleKeys,
    destinationRuleChooser: rules.destinationRuleChooser,
    hasSelectiveDestinationRules: rules.hasSelectiveDestinationRules,
  };
}
