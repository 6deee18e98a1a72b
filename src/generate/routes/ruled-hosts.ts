import type { Query } from "../../engine/index.ts";
import type { VirtualHostInput } from "../../envoy/route/route-input.ts";
import { type ServiceRef, serviceKey } from "../../model/service.ts";
import { outlooksOf, type SeenService } from "../clusters/outlook.ts";
import type { GenerateContext } from "../context.ts";
import { MESH_GATEWAY } from "../lookups/virtual-services.ts";
import { isPolicy, objectsBehind } from "../resource-set.ts";
import { type RouteClient, sessionOfHost, siteFor, virtualHost } from "./hosts.ts";
import { routeHeadersId } from "./route-headers.ts";
import { translateRules } from "./translate/rule.ts";

/** A host that a VirtualService speaks for, at a port, as a client sees it. */
export interface RuledHostKey {
  readonly vs: string;
  readonly host: string;
  readonly port: number;
  /** Set where the listener stands for all ports: a destination that names none then means its only one. */
  readonly anyPort?: true;
  readonly client: RouteClient;
}

/** What of a client the rules of a VirtualService ask for. */
interface Questions {
  readonly namespace: boolean;
  readonly labels: boolean;
  /** Where its rules lead, and what is found there by clients without rules of their own. */
  readonly destinations: readonly { readonly host: string; readonly found: string }[];
}

/** Bodies of hosts with rules. */
export interface RuledHosts {
  /** Undefined where none of the rules applies. */
  of(key: RuledHostKey): Uint8Array | undefined;
  /** Keys of the rules that such a body is made from. */
  behind(key: RuledHostKey): readonly string[];
  /** Whether the rules of a VirtualService are to clients that see these services what they are to anyone. */
  alikeFor(vs: string, seen: ReadonlyMap<string, SeenService>): boolean;
}

/**
 * Bodies of hosts with rules. Most rules ask nothing of the client, so one body serves all namespaces; a client is part of the key
 * only where a rule matches its namespace or labels, or its own DestinationRules may change how a destination is chosen.
 */
export function defineRuledHosts(ctx: GenerateContext, body: Query<VirtualHostInput, Uint8Array>): RuledHosts {
  const questions = ctx.engine.query<string, Questions>({ name: "virtualServiceQuestions", compute: (vs) => questionsOf(ctx, vs) });
  const ruled = ctx.engine.query<RuledHostKey, Uint8Array | undefined>({
    name: "ruledHost",
    id: ({ vs, host, port, anyPort, client }) =>
      `${vs}|${host}|${port}${anyPort === true ? "*" : ""}|${client.namespace}|${client.labels === undefined ? "" : JSON.stringify(client.labels)}${routeHeadersId(client.headers)}`,
    compute: ({ vs, host, port, anyPort, client }) => {
      const resolved = ctx.lookups.virtualService(vs);
      if (resolved === undefined) return undefined;
      const defaultPort = (to: string): number => (anyPort === true ? onlyPort(ctx, client, to) : undefined) ?? port;
      const routes = translateRules(resolved, siteFor(ctx, client, { gateway: MESH_GATEWAY, port, secure: false, defaultPort }));
      if (routes.length === 0) return undefined;
      const session = sessionOfHost(ctx, host, client.namespace);
      return body({ ...virtualHost(`${host}:${port}`, routes, client.headers), ...(session !== undefined && { session }) });
    },
  });
  const shared = (key: RuledHostKey): RuledHostKey => ({ ...key, client: clientFor(ctx, questions(key.vs), key.client) });
  return {
    of: (key) => ruled(shared(key)),
    behind: (key) => objectsBehind(ctx.engine, ruled, shared(key)).filter(isPolicy),
    alikeFor: (vs, seen) => {
      const asked = questions(vs);
      return !asked.labels && !asked.namespace && !findsOther(seen, asked);
    },
  };
}

function onlyPort(ctx: GenerateContext, client: RouteClient, host: string): number | undefined {
  const ref = ctx.lookups.visibleService(host, client.namespace);
  const [first, ...others] = (ref && ctx.registry.service(ref)?.ports) ?? [];
  return others.length === 0 ? first?.number : undefined;
}

/** A client without rules of its own, in no namespace that there is. */
export const ANYONE: Pick<RouteClient, "namespace" | "labels"> = { namespace: "", labels: undefined };

function clientFor(ctx: GenerateContext, asked: Questions, client: RouteClient): RouteClient {
  if (asked.labels || client.namespace === ANYONE.namespace) return client;
  const own =
    asked.namespace || ctx.lookups.hasSelectiveDestinationRules(client.namespace) || findsOther(seenFrom(ctx, client.namespace), asked);
  return own ? client : { ...ANYONE, headers: client.headers };
}

/** The services that clients of a namespace see, by host, whatever a Sidecar lets some of them import. */
function seenFrom(ctx: GenerateContext, namespace: string): ReadonlyMap<string, SeenService> {
  const outlooks = outlooksOf(ctx);
  return outlooks.byHost(outlooks.of({ namespace, sidecar: undefined, labels: undefined }));
}

/** Whether clients that see these services find another one, or have other DestinationRules, where the rules lead. */
function findsOther(seen: ReadonlyMap<string, SeenService>, { destinations }: Questions): boolean {
  return destinations.some(({ host, found }) => {
    const own = seen.get(host);
    return found !== (own === undefined ? "" : foundText(own.service, own.rules));
  });
}

const foundText = (service: ServiceRef, rules: readonly string[]): string => `${serviceKey(service)}|${rules.join()}`;

/** The service a host means to clients without rules of their own, and the DestinationRules they use for it. */
function foundByAnyone({ lookups }: GenerateContext, host: string): string {
  const service = lookups.visibleService(host, ANYONE.namespace);
  if (service === undefined) return "";
  const rules = { host, clientNamespace: ANYONE.namespace, serviceNamespace: service.namespace, labels: undefined };
  return foundText(service, lookups.destinationRuleKeys(rules));
}

function questionsOf(ctx: GenerateContext, vs: string): Questions {
  const rules = ctx.lookups.virtualService(vs)?.spec.http ?? [];
  const matches = rules.flatMap(({ match }) => match);
  return {
    namespace: matches.some(({ sourceNamespace }) => sourceNamespace !== ""),
    labels: matches.some(({ sourceLabels }) => Object.keys(sourceLabels).length > 0),
    destinations: [...new Set(rules.flatMap(({ route }) => route.map(({ destination }) => destination?.host ?? "")))].map((host) => ({
      host,
      found: foundByAnyone(ctx, host),
    })),
  };
}
