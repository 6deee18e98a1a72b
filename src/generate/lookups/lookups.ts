import type { GenerateContext, Lookups } from "../context.ts";
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
  return {
    scope: defineScopes({ ctx, services, virtualServices }),
    virtualService: virtualServices.virtualService,
    gatewayVirtualServices: (gateway, namespace) => virtualServices.boundTo({ gateway, namespace }),
    mergedGateway: defineMergedGateway(ctx),
    visibleService: (host, namespace) => services.visibleService({ host, namespace }),
    extensionsFor: defineExtensionChoice(ctx),
    aliases: defineServiceAliases(ctx),
    destinationRule: rules.destinationRule,
    mergedDestinationRule: rules.mergedDestinationRule,
    destinationRuleKeys: rules.destinationRuleKeys,
    hasSelectiveDestinationRules: rules.hasSelectiveDestinationRules,
  };
}
