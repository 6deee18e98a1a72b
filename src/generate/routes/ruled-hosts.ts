import type { Query } from "../../engine/index.ts";
import type { VirtualHostInput } from "../../envoy/route/route-input.ts";
import type { GenerateContext } from "../context.ts";
import { MESH_GATEWAY } from "../lookups/virtual-services.ts";
import { type RouteClient, siteFor, virtualHost } from "./hosts.ts";
import { routeHeadersId } from "./route-headers.ts";
import { translateRules } from "./translate/rule.ts";

/** A host that a VirtualService speaks for, at a port, as a client sees it. */
export interface RuledHostKey {
  readonly vs: string;
  readonly host: string;
  readonly port: number;
  readonly client: RouteClient;
}

/** What of a client the rules of a VirtualService ask for. */
interface Questions {
  readonly namespace: boolean;
  readonly labels: boolean;
  readonly destinations: readonly string[];
}

/**
 * Bodies of hosts with rules. Most rules ask nothing of the client, so one body serves all namespaces; a client is part of the key
 * only where a rule matches its namespace or labels, or its own DestinationRules may change how a destination is chosen.
 */
export function defineRuledHosts(
  ctx: GenerateContext,
  body: Query<VirtualHostInput, Uint8Array>,
): (key: RuledHostKey) => Uint8Array | undefined {
  const questions = ctx.engine.query<string, Questions>({ name: "virtualServiceQuestions", compute: (vs) => questionsOf(ctx, vs) });
  const ruled = ctx.engine.query<RuledHostKey, Uint8Array | undefined>({
    name: "ruledHost",
    id: ({ vs, host, port, client }) =>
      `${vs}|${host}|${port}|${client.namespace}|${client.labels === undefined ? "" : JSON.stringify(client.labels)}${routeHeadersId(client.headers)}`,
    compute: ({ vs, host, port, client }) => {
      const resolved = ctx.lookups.virtualService(vs);
      if (resolved === undefined) return undefined;
      const routes = translateRules(
        resolved,
        siteFor(ctx, client, { gateway: MESH_GATEWAY, port, secure: false, defaultPort: () => port }),
      );
      return routes.length === 0 ? undefined : body(virtualHost(`${host}:${port}`, routes, client.headers));
    },
  });
  return (key) => ruled({ ...key, client: clientFor(ctx, questions(key.vs), key.client) });
}

const ANYONE: Pick<RouteClient, "namespace" | "labels"> = { namespace: "", labels: undefined };

function clientFor(ctx: GenerateContext, asked: Questions, client: RouteClient): RouteClient {
  if (asked.labels) return client;
  const own = asked.namespace || asked.destinations.some((host) => ownRule(ctx, client, host));
  return own ? client : { ...ANYONE, headers: client.headers };
}

/** Whether a client's DestinationRule or view of a host differs from that of clients without rules of their own. */
function ownRule(ctx: GenerateContext, client: RouteClient, host: string): boolean {
  const keys = ({ namespace }: Pick<RouteClient, "namespace">): string => {
    const serviceNamespace = ctx.lookups.visibleService(host, namespace)?.namespace ?? namespace;
    return ctx.lookups.destinationRuleKeys({ host, clientNamespace: namespace, serviceNamespace, labels: undefined }).join();
  };
  return ctx.lookups.hasSelectiveDestinationRules(client.namespace) || keys(client) !== keys(ANYONE);
}

function questionsOf(ctx: GenerateContext, vs: string): Questions {
  const rules = ctx.lookups.virtualService(vs)?.spec.http ?? [];
  const matches = rules.flatMap(({ match }) => match);
  return {
    namespace: matches.some(({ sourceNamespace }) => sourceNamespace !== ""),
    labels: matches.some(({ sourceLabels }) => Object.keys(sourceLabels).length > 0),
    destinations: [...new Set(rules.flatMap(({ route }) => route.map(({ destination }) => destination?.host ?? "")))],
  };
}
