import type { Query } from "../../engine/index.ts";
import type { VirtualHostInput } from "../../envoy/route/route-input.ts";
import { sharedDomains, type TableHost } from "../../envoy/route/route-table.ts";
import { refOf, serviceKey } from "../../model/service.ts";
import type { GenerateContext, ScopeKey } from "../context.ts";
import { ahead } from "../prepare-first.ts";
import { plainHost, type RouteClient, unknownHost } from "./hosts.ts";
import type { PlainHosts } from "./plain-hosts.ts";
import type { RuledHostKey, RuledHosts } from "./ruled-hosts.ts";
import type { PlannedHost, PlannedTable, SidecarPlanKey } from "./sidecar-plan.ts";

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
  /** The DestinationRules that clients of a scope use for each service they see, as texts to compare. */
  readonly rulesIn: (scope: ScopeKey) => ReadonlyMap<string, string>;
}

/** The virtual hosts of a table, and whether clients may name any port beside a host, or must name the right one. */
export interface TableHosts {
  readonly hosts: readonly TableHost[];
  readonly ignorePort: boolean;
}

/** The virtual hosts of a sidecar's route table; the last one says what becomes of unknown hosts. */
export function sidecarHosts(parts: TableParts, key: SidecarTableKey): TableHosts {
  const { hosts, ignorePort } = parts.plan(key);
  return { hosts: [...madeHosts(parts, key, hosts), ...inlineHosts(parts, key)], ignorePort };
}

/** Hosts whose rules have been translated once, and lists of none but such: what changes later is little. */
const translated = new WeakSet<PlannedHost | readonly PlannedHost[]>();

/** The work behind a table in small steps. What has been done for another table, or before a change, is not walked through again. */
export function* tableSteps(parts: TableParts, key: SidecarTableKey): Iterable<void> {
  const port = Number(key.name);
  const { dnsCapture, remoteCluster, headers } = key;
  if (Number.isInteger(port)) yield* parts.plainHosts.steps({ port, dnsCapture, remoteCluster, headers });
  const hosts = ahead(() => parts.plan(key).hosts) ?? [];
  if (translated.has(hosts)) return;
  for (const host of hosts) {
    if (host.vs.length === 0 || translated.has(host)) continue;
    translated.add(host);
    ahead(() => ruledBody(parts, key, host));
    yield;
  }
  translated.add(hosts);
}

/** Hosts of a plan, made. One that only a VirtualService names, and for which none of its rules applies, is left out. */
export function madeHosts(parts: TableParts, key: SidecarTableKey, hosts: readonly PlannedHost[]): readonly TableHost[] {
  const rules = parts.rulesIn(key.scope);
  return hosts.flatMap((host) => {
    const body = ruledBody(parts, key, host) ?? plainBody(parts, key, { host, rules });
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
  const host = parts.plan(key).hosts.find((one) => one.name === name);
  if (host === undefined) return [];
  const { ctx, ruledHosts } = parts;
  const { service } = host;
  const declared = service && ctx.registry.service(service)?.objectKey;
  const routes = candidatesOf(key, host).flatMap((rule) => ruledHosts.behind(rule));
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

function ruledBody({ ruledHosts }: TableParts, key: SidecarTableKey, host: PlannedHost): Uint8Array | undefined {
  for (const rule of candidatesOf(key, host)) {
    const ruled = ruledHosts.of(rule);
    if (ruled !== undefined) return ruled;
  }
  return undefined;
}

const candidatesOf = (key: SidecarTableKey, { vs, host, port, anyPort }: PlannedHost): readonly RuledHostKey[] =>
  vs.map((one) => ({ vs: one, host, port, ...(anyPort === true && { anyPort }), client: clientOf(key) }));

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
