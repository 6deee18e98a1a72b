import type { Query } from "../../engine/index.ts";
import type { TableHost } from "../../envoy/route/route-table.ts";
import { serviceKey } from "../../model/service.ts";
import { type Outlook, outlooksOf } from "../clusters/outlook.ts";
import type { GenerateContext, ScopeKey } from "../context.ts";
import { type HostGroup, numberOf, type PlannedHost } from "./planned-host.ts";
import { type RouteHeaders, routeHeadersId } from "./route-headers.ts";
import { ANYONE, type RuledHostKey, type RuledHosts } from "./ruled-hosts.ts";

/** Hosts as they are to clients without rules of their own. Most clients are such, and share what is made for one. */
export interface CommonHosts {
  /**
   * Makes the hosts of groups for clients of a scope; undefined where some of a group are not to them what they are to anyone. Not to be kept beyond the
   * run of the query it is asked for in.
   */
  for(scope: ScopeKey, headers: RouteHeaders): (group: HostGroup) => readonly TableHost[] | undefined;
}

interface CommonParts {
  readonly ctx: GenerateContext;
  readonly ruledHosts: RuledHosts;
  readonly rulesIn: Query<Outlook, ReadonlyMap<string, string>>;
}

/** What clients see: where rules lead, in all of the mesh, and which hosts they are served, within what a Sidecar imports. */
interface Sight {
  readonly group: HostGroup;
  readonly everywhere: Outlook;
  readonly imported: Outlook;
}

interface CommonKey {
  readonly group: HostGroup;
  readonly headers: RouteHeaders;
}

/** Whether a group is common is asked once for each outlook, and the group is made once: a table then costs its groups, not its hosts. */
export function defineCommonHosts({ ctx, ruledHosts, rulesIn }: CommonParts): CommonHosts {
  const outlooks = outlooksOf(ctx);
  const isCommon = ctx.engine.query<Sight, boolean>({
    name: "hostsAreCommon",
    id: ({ group, everywhere, imported }) => `${numberOf(group)}|${everywhere.id}|${imported.id}`,
    compute: ({ group, everywhere, imported }) => {
      const seen = outlooks.byHost(everywhere);
      const rules = rulesIn(imported);
      return group.every(
        ({ vs, service }) =>
          vs.every((key) => ruledHosts.alikeFor(key, seen)) && (service === undefined || rules.get(serviceKey(service)) === service.rules),
      );
    },
  });
  const made = ctx.engine.query<CommonKey, readonly TableHost[]>({
    name: "commonHosts",
    id: ({ group, headers }) => `${numberOf(group)}${routeHeadersId(headers)}`,
    same: sameMade,
    compute: ({ group, headers }) =>
      group.flatMap((host) => {
        const body = ruledBody(ruledHosts, host, { ...ANYONE, headers }) ?? host.service?.body;
        return body === undefined ? [] : [{ name: host.name, body, domains: host.domains }];
      }),
  });
  return {
    for({ namespace, sidecar }, headers) {
      if (ctx.lookups.hasSelectiveDestinationRules(namespace)) return () => undefined;
      const everywhere = outlooks.of({ namespace, sidecar: undefined, labels: undefined });
      const imported = outlooks.of({ namespace, sidecar, labels: undefined });
      return (group) => (isCommon({ group, everywhere, imported }) ? made({ group, headers }) : undefined);
    },
  };
}

/** What VirtualServices make of a host for a client: the first that has a rule for it speaks. */
export function ruledBody(ruledHosts: RuledHosts, host: PlannedHost, client: RuledHostKey["client"]): Uint8Array | undefined {
  for (const rule of candidatesOf(host, client)) {
    const ruled = ruledHosts.of(rule);
    if (ruled !== undefined) return ruled;
  }
  return undefined;
}

/** The rules that may speak for a host. */
export const candidatesOf = ({ vs, host, port, anyPort }: PlannedHost, client: RuledHostKey["client"]): readonly RuledHostKey[] =>
  vs.map((one) => ({ vs: one, host, port, ...(anyPort === true && { anyPort }), client }));

const sameMade = (a: readonly TableHost[], b: readonly TableHost[]): boolean =>
  a.length === b.length &&
  a.every((host, index) => host.body === b[index]?.body && host.domains === b[index]?.domains && host.name === b[index]?.name);
