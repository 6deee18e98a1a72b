import type { Query } from "../../engine/index.ts";
import type { VirtualHostInput } from "../../envoy/route/route-input.ts";
import { sharedDomains, type TableHost } from "../../envoy/route/route-table.ts";
import { refOf, serviceKey } from "../../model/service.ts";
import { type Outlook, outlooksOf } from "../clusters/outlook.ts";
import type { GenerateContext } from "../context.ts";
import { ahead } from "../prepare-first.ts";
import { type CommonHosts, candidatesOf, ruledBody } from "./common-hosts.ts";
import { plainHost, type RouteClient, unknownHost } from "./hosts.ts";
import type { PlainHosts } from "./plain-hosts.ts";
import type { HostGroup, PlannedHost } from "./planned-host.ts";
import type { RuledHosts } from "./ruled-hosts.ts";
import type { PlannedTable, SidecarPlanKey } from "./sidecar-plan.ts";

/** What decides a sidecar's route table. */
export interface SidecarTableKey extends SidecarPlanKey {
  readonly labels: Readonly<Record<string, string>> | undefined;
}

/** Where tables get their parts from. */
export interface TableParts {
  readonly ctx: GenerateContext;
  readonly body: Query<VirtualHostInput, Uint8Array>;
  readonly plan: Query<SidecarPlanKey, PlannedTable>;
  readonly plainHosts: PlainHosts;
  readonly ruledHosts: RuledHosts;
  readonly commonHosts: CommonHosts;
  /** The DestinationRules that clients of an outlook use for each service they see, as texts to compare. */
  readonly rulesIn: Query<Outlook, ReadonlyMap<string, string>>;
}

/** The virtual hosts of a table, and whether clients may name any port beside a host, or must name the right one. */
export interface TableHosts {
  readonly groups: readonly (readonly TableHost[])[];
  readonly ignorePort: boolean;
}

/** The virtual hosts of a sidecar's route table; the last one says what becomes of unknown hosts. */
export function sidecarHosts(parts: TableParts, key: SidecarTableKey): TableHosts {
  const { groups, ignorePort } = parts.plan(key);
  return { groups: [...groups.map(hostMaker(parts, key)), inlineHosts(parts, key)], ignorePort };
}

/** Groups whose rules have been translated once: what changes later is little. */
const translated = new WeakSet<HostGroup>();

/** The work behind a table in small steps. What has been done for another table, or before a change, is not walked through again. */
export function* tableSteps(parts: TableParts, key: SidecarTableKey): Iterable<void> {
  const port = Number(key.name);
  const { dnsCapture, remoteCluster, headers } = key;
  if (Number.isInteger(port)) yield* parts.plainHosts.steps({ port, dnsCapture, remoteCluster, headers });
  for (const group of ahead(() => parts.plan(key).groups) ?? []) {
    if (translated.has(group)) continue;
    translated.add(group);
    for (const host of group) {
      if (host.vs.length === 0) continue;
      ahead(() => ruledBody(parts.ruledHosts, host, clientOf(key)));
      yield;
    }
  }
}

/**
 * Makes the hosts of groups. One that only a VirtualService names, and for which none of its rules applies, is left out. Not to be kept beyond the run of
 * the query it is made in.
 */
export function hostMaker(parts: TableParts, key: SidecarTableKey): (group: HostGroup) => readonly TableHost[] {
  const common = key.labels === undefined ? parts.commonHosts.for(key.scope, key.headers) : () => undefined;
  return (group) => common(group) ?? ownHosts(parts, key, group);
}

/** Hosts that are not to a client what they are to anyone. */
function ownHosts(parts: TableParts, key: SidecarTableKey, group: HostGroup): readonly TableHost[] {
  const { namespace, sidecar } = key.scope;
  const rules = parts.rulesIn(outlooksOf(parts.ctx).of({ namespace, sidecar, labels: undefined }));
  return group.flatMap((host) => {
    const body = ruledBody(parts.ruledHosts, host, clientOf(key)) ?? plainBody(parts, key, { host, rules });
    return body === undefined ? [] : [{ name: host.name, body, domains: host.domains }];
  });
}

/** The host for all that a table does not name, where it has one. */
export function inlineHosts(parts: TableParts, key: SidecarTableKey): readonly TableHost[] {
  if (!parts.plan(key).catchAll) return [];
  const unknown = unknownHost(parts.ctx.lookups.scope(key.scope), key.headers);
  return [{ name: unknown.name, body: parts.body(unknown), domains: sharedDomains(["*"]) }];
}

/** Keys of the objects that one host of a sidecar's table is made from. */
export function behindHost(parts: TableParts, key: SidecarTableKey, name: string): readonly string[] {
  const host = parts
    .plan(key)
    .groups.flat()
    .find((one) => one.name === name);
  if (host === undefined) return [];
  const { ctx, ruledHosts } = parts;
  const { service } = host;
  const declared = service && ctx.registry.service(service)?.objectKey;
  const routes = candidatesOf(host, clientOf(key)).flatMap((rule) => ruledHosts.behind(rule));
  const rules =
    service === undefined
      ? []
      : ctx.lookups.destinationRuleKeys({
          host: service.host,
          clientNamespace: key.scope.namespace,
          serviceNamespace: service.namespace,
          labels: key.labels,
        });
  return [...new Set([...(declared === undefined ? [] : [declared]), ...routes, ...rules])];
}

const clientOf = ({ scope, labels, headers }: SidecarTableKey): RouteClient => ({ namespace: scope.namespace, labels, headers });

/** A client with a DestinationRule of its own for the host may hash requests differently; all others share one body. */
function plainBody(
  { ctx, body }: TableParts,
  key: SidecarTableKey,
  { host, rules }: { readonly host: PlannedHost; readonly rules: ReadonlyMap<string, string> },
): Uint8Array | undefined {
  const { service, port } = host;
  if (service === undefined) return undefined;
  const shared = key.labels === undefined && rules.get(serviceKey(service)) === service.rules;
  return shared ? service.body : body(plainHost(ctx, clientOf(key), { ...refOf(service), port }));
}
