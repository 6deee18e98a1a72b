import { matchesHost } from "../../base/hostname.ts";
import { isHttp } from "../../model/protocol.ts";
import type { Service } from "../../model/service.ts";
import type { EgressScope, GenerateContext, ResolvedVirtualService, Scope, ScopeKey } from "../context.ts";
import { MESH_GATEWAY } from "../lookups/virtual-services.ts";
import { domainsOf } from "./domains.ts";
import { type NamedHost, plainHost, type RouteClient, siteFor, unknownHost, virtualHost } from "./hosts.ts";
import { translateRules } from "./translate/rule.ts";

/** What decides a sidecar's route table. */
export interface SidecarTableKey {
  readonly scope: ScopeKey;
  readonly name: string;
  readonly dnsDomain: string;
  readonly dnsCapture: boolean;
  readonly labels: Readonly<Record<string, string>> | undefined;
}

/** Which part of the mesh a table speaks for, read from its name: a port, one sniffed host, an explicit proxy, or a socket. */
interface TableSubject {
  readonly port: number;
  readonly host: string | undefined;
}

/** The explicit HTTP proxy of a workload (`HTTP_PROXY_PORT`): clients name host and port, so domains carry ports. */
export const HTTP_PROXY_TABLE = "http_proxy";

/** The virtual hosts of a sidecar's route table, ready to be encoded. Never empty: the last one says what becomes of unknown hosts. */
export function sidecarHosts(ctx: GenerateContext, key: SidecarTableKey): readonly NamedHost[] {
  const scope = ctx.lookups.scope(key.scope);
  const catchAll: NamedHost = { input: unknownHost(scope), domains: ["*"] };
  const hosts = key.name === HTTP_PROXY_TABLE ? proxyHosts(ctx, scope, key) : subjectHosts(ctx, key, subjectOf(scope, key.name));
  return [...hosts.toSorted((a, b) => (a.input.name < b.input.name ? -1 : 1)), catchAll];
}

function subjectOf(scope: Scope, name: string): TableSubject & { readonly egress: EgressScope | undefined } {
  const colon = name.lastIndexOf(":");
  const port = Number(colon < 0 ? name : name.slice(colon + 1));
  if (!Number.isInteger(port)) {
    const egress = scope.egress.find(({ bind }) => bind === name);
    return { port: egress?.port?.number ?? 0, host: undefined, egress };
  }
  return { port, host: colon < 0 ? undefined : name.slice(0, colon), egress: egressFor(scope, port) };
}

/** The egress listener that names the port, else the one that names none. */
function egressFor(scope: Scope, port: number): EgressScope | undefined {
  return scope.egress.find((egress) => egress.port?.number === port) ?? scope.egress.find((egress) => egress.port === undefined);
}

function proxyHosts(ctx: GenerateContext, scope: Scope, key: SidecarTableKey): readonly NamedHost[] {
  const ports = new Set(scope.services.flatMap((ref) => ctx.registry.service(ref)?.ports.filter(({ protocol }) => isHttp(protocol) || protocol === "Auto").map(({ number }) => number) ?? []));
  return [...ports].flatMap((port) =>
    subjectHosts(ctx, key, { port, host: undefined, egress: egressFor(scope, port) }).map(({ input, domains }) => ({
      input,
      domains: domains.flatMap((domain) => (port === 80 ? [domain, `${domain}:${port}`] : [`${domain}:${port}`])),
    })),
  );
}

function subjectHosts(ctx: GenerateContext, key: SidecarTableKey, subject: TableSubject & { readonly egress: EgressScope | undefined }): readonly NamedHost[] {
  const { egress, port } = subject;
  if (egress === undefined) return [];
  const services = servicesAt(ctx, egress, subject);
  const client: RouteClient = { namespace: key.scope.namespace, labels: key.labels };
  const ruled = ruledHosts(ctx, { egress, services, client, port, key });
  const covered = new Set(ruled.map(({ host }) => host));
  const plain = services.filter(({ host }) => !covered.has(host)).map((service) => ({ input: plainHost(ctx, client, { ...service, port }), domains: domainsOf(service, key) }));
  const wanted = subject.host === undefined ? ruled : ruled.filter(({ host }) => host === subject.host);
  return [...wanted.map(({ named }) => named), ...plain];
}

function servicesAt(ctx: GenerateContext, egress: EgressScope, subject: TableSubject): readonly Service[] {
  return egress.services
    .filter(({ host, ports }) => (subject.host === undefined || subject.host === host) && (ports === undefined || ports.includes(subject.port)))
    .map((ref) => ctx.registry.service(ref))
    .filter((service) => service !== undefined)
    .filter(({ ports }) => ports.some(({ number, protocol }) => number === subject.port && (isHttp(protocol) || protocol === "Auto")));
}

interface RuledParts {
  readonly egress: EgressScope;
  readonly services: readonly Service[];
  readonly client: RouteClient;
  readonly port: number;
  readonly key: SidecarTableKey;
}

/**
 * Hosts that VirtualServices speak for. An exact host goes before a wildcard, then the first object in order of precedence has it.
 * Hosts without a service on this port are served beside those that have one, and on port 80 always, because that is where people
 * who call them expect it (Istio does the same).
 */
function ruledHosts(ctx: GenerateContext, { egress, services, client, port, key }: RuledParts): readonly { readonly host: string; readonly named: NamedHost }[] {
  const resolved = egress.virtualServices.map((vs) => ctx.lookups.virtualService(vs)).filter((vs) => vs !== undefined).filter(({ spec }) => spec.http.length > 0);
  const byHost = new Map(services.map((service) => [service.host, service]));
  const owners = new Map<string, ResolvedVirtualService>();
  const bare = new Map<string, ResolvedVirtualService>();
  const claim = (host: string, vs: ResolvedVirtualService, into: Map<string, ResolvedVirtualService>): boolean => into.has(host) || into.set(host, vs).has(host);
  for (const vs of resolved) for (const host of vs.spec.hosts) if (byHost.has(host)) claim(host, vs, owners);
  const wildcards = resolved.flatMap((vs) => vs.spec.hosts.filter((host) => host.startsWith("*")).map((host) => ({ host, vs }))).sort((a, b) => b.host.length - a.host.length);
  for (const service of services) {
    const best = wildcards.find(({ host }) => matchesHost(host, service.host));
    if (best !== undefined) claim(service.host, best.vs, owners);
  }
  const served = new Set([...owners.values()]);
  for (const vs of resolved) {
    if (port !== 80 && !served.has(vs)) continue;
    for (const host of vs.spec.hosts) if (!byHost.has(host) && !services.some((service) => host.startsWith("*") && matchesHost(host, service.host))) claim(host, vs, bare);
  }
  const named = (host: string, vs: ResolvedVirtualService, domains: readonly string[]) => {
    const site = siteFor(ctx, client, { gateway: MESH_GATEWAY, port, secure: false, operationHost: host, defaultPort: () => port });
    return { host, named: { input: virtualHost(`${host}:${port}`, translateRules(vs, site)), domains } };
  };
  return [
    ...[...owners].map(([host, vs]) => named(host, vs, domainsOf(byHost.get(host) ?? { host, addresses: [], autoAddresses: [] }, key))),
    ...[...bare].map(([host, vs]) => named(host, vs, [host])),
  ].filter(({ named: { input } }) => input.routes.length > 0);
}
