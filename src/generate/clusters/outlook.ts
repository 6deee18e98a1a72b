import { contentHash } from "../../base/hash.ts";
import { Interned } from "../../base/interned.ts";
import type { Engine, Query } from "../../engine/index.ts";
import { serviceKey } from "../../model/service.ts";
import type { GenerateContext, ResolvedDestinationRule, ScopedService } from "../context.ts";
import { remembered } from "../remembered.ts";
import { type ClientClass, clientClassId } from "./client-class.ts";

/** A service that clients see, and which DestinationRules they use for it. */
export interface SeenService {
  readonly service: ScopedService;
  /** Keys of the rules that are merged for it. What they say is looked up by who needs it. */
  readonly rules: readonly string[];
}

/**
 * The services a class of clients sees with the rules it uses for them. Most namespaces see the same: equal ids mean equal outlooks, and what is
 * worked out for one serves all that have it.
 */
export interface Outlook {
  readonly id: string;
  readonly services: readonly SeenService[];
}

const NONE: readonly string[] = [];
const outlooks = new Interned<Outlook>();

/** Who sees what. */
export interface Outlooks {
  /** The outlook of a class of clients. */
  readonly of: Query<ClientClass, Outlook>;
  /** Its services by host. */
  readonly byHost: Query<Outlook, ReadonlyMap<string, SeenService>>;
}

const defined = new WeakMap<Engine, Outlooks>();

/** The queries about what clients see; defined on first use, since queries have one definition per engine. */
export function outlooksOf(ctx: GenerateContext): Outlooks {
  const known = defined.get(ctx.engine) ?? define(ctx);
  defined.set(ctx.engine, known);
  return known;
}

/** The rule of a service as one. */
export function ruleOf(
  { lookups }: Pick<GenerateContext, "lookups">,
  { service, rules }: SeenService,
): ResolvedDestinationRule | undefined {
  return rules.length === 0 ? undefined : lookups.mergedDestinationRule(rules, service.host);
}

function define(ctx: GenerateContext): Outlooks {
  const of = ctx.engine.query<ClientClass, Outlook>({
    name: "clients.outlook",
    id: clientClassId,
    compute(client) {
      const { services } = ctx.lookups.scope({ namespace: client.namespace, sidecar: client.sidecar });
      const mayHaveRules = rulesAbout(ctx, client);
      const rulesFor = ctx.lookups.destinationRuleChooser({ clientNamespace: client.namespace, labels: client.labels });
      const seen = services.map((service) => ({ service, rules: mayHaveRules(service.namespace) ? rulesFor(service) : NONE }));
      const id = contentHash(seen.map(seenId).join("\n"));
      return outlooks.of(id, () => ({ id, services: seen }));
    },
    same: (a, b) => a.id === b.id,
  });
  const byHost = ctx.engine.query<Outlook, ReadonlyMap<string, SeenService>>({
    name: "clients.seenHosts",
    id: ({ id }) => id,
    compute: ({ services }) => new Map(services.map((seen) => [seen.service.host, seen])),
  });
  return { of, byHost };
}

/** Whether services of a namespace may have rules at all: in most meshes most have none, and nothing is looked up for those. */
function rulesAbout({ inputs }: GenerateContext, client: ClientClass): (namespace: string) => boolean {
  const hasRules = (namespace: string): boolean => inputs.objects.keys("kindNamespace", `DestinationRule/${namespace}`).length > 0;
  const root = inputs.mesh.get("mesh")?.rootNamespace || "istio-system";
  return hasRules(client.namespace) || hasRules(root) ? () => true : remembered(hasRules);
}

const seenId = ({ service, rules }: SeenService): string => `${serviceKey(service)}|${service.ports?.join() ?? ""}|${rules.join()}`;
