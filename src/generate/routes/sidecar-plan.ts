import type { Query } from "../../engine/index.ts";
import { type EncodedDomains, sharedDomains, withDistinctDomains } from "../../envoy/route/route-table.ts";
import { isHttp } from "../../model/protocol.ts";
import { serviceKey } from "../../model/service.ts";
import { type EgressScope, type GenerateContext, type Scope, type ScopedService, type ScopeKey, scopeId } from "../context.ts";
import { keyListId, serviceListId } from "../lookups/key-list.ts";
import { compareText } from "../lookups/precedence.ts";
import { type Addressing, addressingId, completedNames, homeOf, nearnessOf, splitDomain } from "./domains.ts";
import { type Claimant, claimantOf, claimsOf, type Imports } from "./host-claims.ts";
import type { PlainHost, PortQuery } from "./plain-hosts.ts";
import { groupsOf, type HostGroup, type PlannedHost, planned, sameGroups, sharedGroup } from "./planned-host.ts";
import { type RouteHeaders, routeHeadersId } from "./route-headers.ts";

/** What decides which hosts a sidecar's route table has. */
export interface SidecarPlanKey extends Addressing {
  readonly scope: ScopeKey;
  readonly name: string;
  readonly dnsDomain: string;
  readonly headers: RouteHeaders;
}

export interface PlannedTable {
  readonly groups: readonly HostGroup[];
  /** Besides these a host takes what nobody declared; not where the table has one host, for every name. No rule of the mesh may claim `*`. */
  readonly catchAll: boolean;
  /** Clients may name any port beside a host. Otherwise they must name the right one. */
  readonly ignorePort: boolean;
}

/** A port of the mesh, of one host where the protocol is found out by sniffing, as an egress listener sees it. */
interface PortSubject {
  readonly port: number;
  readonly host: string | undefined;
  readonly egress: Imports | undefined;
  /** The table stands for all ports, this among them. */
  readonly anyPort?: true;
}

/** Which part of the mesh a table speaks for: a port, or every port, and then clients have to name it. */
type TableSubject = PortSubject | { readonly anyPortOf: readonly EgressScope[] };

/** The explicit HTTP proxy of a workload (`HTTP_PROXY_PORT`). */
const HTTP_PROXY_TABLE = "http_proxy";

const EVERY_HOST = "*";

/** Whether many hosts may share a table of this name. The others are those of one service whose protocol is sniffed (`reviews:9080`). */
export function isSharedTable(name: string): boolean {
  const colon = name.lastIndexOf(":");
  return colon < 0 || !Number.isInteger(Number(name.slice(colon + 1)));
}

interface PlanParts {
  readonly ctx: GenerateContext;
  readonly plainHosts: Query<PortQuery, ReadonlyMap<string, PlainHost>>;
  readonly claimants: Query<readonly string[], readonly Claimant[]>;
  readonly common: Query<CommonKey, CommonPlan>;
}

/** What decides the hosts of a port for clients of other namespaces: most namespaces agree on it. */
interface CommonKey extends Naming {
  readonly port: number;
  readonly services: readonly ScopedService[];
  readonly virtualServices: readonly string[];
}

/** What of a client decides which names its hosts go by. */
type Naming = Pick<SidecarPlanKey, "dnsDomain" | "dnsCapture" | "remoteCluster" | "headers">;

/** The hosts of a port as clients see them that are at home with none of them. */
interface CommonPlan {
  readonly groups: readonly HostGroup[];
  /** The same by the namespace in whose domain they are: its clients call them by a name more. */
  readonly homes: ReadonlyMap<string, ReadonlySet<PlannedHost>>;
  /** All domains; undefined where some host had to go without one that another has. */
  readonly taken: ReadonlySet<string> | undefined;
}

/**
 * Plans sidecars' route tables. A plan changes when hosts come, go or change hands, and not when a route does: so a change of routes costs the
 * routes.
 */
export function defineSidecarPlan(
  ctx: GenerateContext,
  plainHosts: Query<PortQuery, ReadonlyMap<string, PlainHost>>,
): Query<SidecarPlanKey, PlannedTable> {
  const claimant = ctx.engine.query<string, Claimant | undefined>({
    name: "virtualServiceClaims",
    eager: true,
    compute: (key) => {
      const spec = ctx.lookups.virtualService(key)?.spec;
      return spec && claimantOf(key, spec);
    },
  });
  const claimants = ctx.engine.query<readonly string[], readonly Claimant[]>({
    name: "virtualServicesClaims",
    id: keyListId,
    compute: (keys) => keys.map((key) => claimant(key)).filter((one) => one !== undefined),
  });
  const common: PlanParts["common"] = ctx.engine.query<CommonKey, CommonPlan>({
    name: "routeTableCommonPlan",
    id: ({ port, services, virtualServices, dnsDomain, headers, ...addressing }) =>
      `${port}|${serviceListId(services)}|${keyListId(virtualServices)}|${dnsDomain}|${addressingId(addressing)}${routeHeadersId(headers)}`,
    same: (a, b) => (a.taken === undefined) === (b.taken === undefined) && sameGroups(a.groups, b.groups),
    compute: (key) => planCommon(parts, key),
  });
  const parts: PlanParts = { ctx, plainHosts, claimants, common };
  return ctx.engine.query<SidecarPlanKey, PlannedTable>({
    name: "routeTablePlan",
    id: ({ scope, name, dnsDomain, headers, ...addressing }) =>
      `${name}|${scopeId(scope)}|${dnsDomain}|${addressingId(addressing)}${routeHeadersId(headers)}`,
    same: samePlan,
    compute: (key) => planTable(parts, key),
  });
}

const samePlan = (a: PlannedTable, b: PlannedTable): boolean =>
  a.ignorePort === b.ignorePort && a.catchAll === b.catchAll && sameGroups(a.groups, b.groups);

/**
 * The table of one sniffed service has that service alone, under any name, as Istio has it: whoever called its address means it. In every other
 * a domain stands once, or Envoy refuses all of it.
 */
function planTable(parts: PlanParts, key: SidecarPlanKey): PlannedTable {
  const scope = parts.ctx.lookups.scope(key.scope);
  const subject = subjectOf(scope, key.name);
  const anyPort = "anyPortOf" in subject;
  const shared = anyPort ? undefined : sharedPlan(parts, key, subject);
  if (shared !== undefined) return { groups: shared, catchAll: true, ignorePort: true };
  const all = anyPort ? subject.anyPortOf.flatMap((egress) => hostsWithPorts(parts, key, egress)) : subjectHosts(parts, key, subject);
  if (!anyPort && subject.host !== undefined) {
    const [only] = all;
    const hosts = only === undefined ? [] : [planned({ ...only, domains: sharedDomains([EVERY_HOST]) })];
    return { groups: groupsOf(hosts), catchAll: false, ignorePort: true };
  }
  const imports = anyPort ? subject.anyPortOf : subject.egress === undefined ? [] : [subject.egress];
  return { groups: groupsOf(inSharedOrder(namedApart(parts, all, imports).map(planned), key)), catchAll: true, ignorePort: !anyPort };
}

/** The hosts of a port out of the plan that namespaces have in common; undefined where that cannot be: names clash, or one host alone is meant. */
function sharedPlan(parts: PlanParts, key: SidecarPlanKey, { port, host, egress }: PortSubject): readonly HostGroup[] | undefined {
  if (host !== undefined || egress === undefined) return undefined;
  const { dnsCapture, remoteCluster, headers } = key;
  const { namespace, suffix } = splitDomain(key.dnsDomain);
  const { services, virtualServices } = egress;
  const dnsDomain = suffix || key.dnsDomain;
  const { groups, homes, taken } = parts.common({ port, services, virtualServices, dnsDomain, dnsCapture, remoteCluster, headers });
  const own = homes.get(namespace);
  if (taken === undefined || own === undefined) return taken && groups;
  const added = new Set<string>();
  const named: PlannedHost[] = [];
  for (const one of own) {
    const domains = one.service === undefined ? one.domains : domainsFor(one.service, key.dnsDomain);
    for (const name of domains.names) {
      if (one.domains.names.includes(name)) continue;
      if (taken.has(name) || added.has(name)) return undefined;
      added.add(name);
    }
    named.push(planned({ ...one, domains }));
  }
  return [...groups.flatMap((group) => without(group, own)), ...groupsOf(named)];
}

/** What is left of a group when some hosts are taken out; mostly all of it. */
function without(group: HostGroup, taken: ReadonlySet<PlannedHost>): readonly HostGroup[] {
  if (!group.some((host) => taken.has(host))) return [group];
  const left = group.filter((host) => !taken.has(host));
  return left.length === 0 ? [] : [sharedGroup(left)];
}

function planCommon(parts: PlanParts, key: CommonKey): CommonPlan {
  const all = subjectHosts(parts, key, { port: key.port, host: undefined, egress: key });
  const apart = namedApart(parts, all, [key]);
  const distinct = apart.map(planned);
  const homes = new Map<string, Set<PlannedHost>>();
  for (const host of distinct) {
    for (const { host: name } of [host, ...(host.service?.aliases ?? [])]) {
      const namespace = homeOf(name, key.dnsDomain);
      if (namespace === undefined) continue;
      const there = homes.get(namespace) ?? new Set();
      homes.set(namespace, there.add(host));
    }
  }
  return {
    groups: groupsOf(inSharedOrder(distinct, key)),
    homes,
    taken: apart !== all ? undefined : new Set(distinct.flatMap(({ domains }) => domains.names)),
  };
}

/**
 * Where hosts share a name one of them has it, as in Istio: a service its full name, whoever calls himself so for short; else the hosts of the first
 * VirtualService go before those of the next, such as only it names before services, and services that nobody speaks for come last. What a
 * VirtualService has for some clients only does not count: others would miss the name.
 */
function namedApart(parts: PlanParts, hosts: readonly PlannedHost[], imports: readonly Imports[]): readonly PlannedHost[] {
  const seen = new Set<string>();
  if (hosts.every(({ domains }) => domains.names.every((name) => seen.size < seen.add(name).size))) return hosts;
  const claimants = imports.flatMap(({ virtualServices }) => parts.claimants(virtualServices));
  const ranks = new Map(claimants.map((claimant, index) => [claimant.key, { ...claimant, index }]));
  const rank = ({ vs, service, port }: PlannedHost): number => {
    const first = vs.map((key) => ranks.get(key)).find((one) => one?.openAt.some((at) => at === 0 || at === port) === true);
    return first === undefined ? Number.POSITIVE_INFINITY : first.index + (service === undefined ? 0 : 0.5);
  };
  const full = new Set(hosts.flatMap(({ service }) => service?.host.toLowerCase() ?? []));
  const isMixed = ({ host }: PlannedHost): number => Number(host !== host.toLowerCase());
  const ordered = hosts.toSorted((a, b) => (rank(a) === rank(b) ? isMixed(a) - isMixed(b) : rank(a) - rank(b)));
  return withDistinctDomains(ordered.map((host) => withoutNames(host, full)));
}

function withoutNames(host: PlannedHost, full: ReadonlySet<string>): PlannedHost {
  const { names } = host.domains;
  const own = names.filter((name) => name === host.host.toLowerCase() || !full.has(name));
  return own.length === names.length ? host : { ...host, domains: sharedDomains(own) };
}

/**
 * In an order in which tables of different namespaces are alike for long stretches, so that what is put together for one serves the others: hosts of
 * a namespace stand together, and those of the client's own, which it calls by other names, come last.
 */
function inSharedOrder(hosts: readonly PlannedHost[], { dnsDomain }: Naming): readonly PlannedHost[] {
  const isOwn = ({ host }: PlannedHost): boolean => nearnessOf(host, dnsDomain) === "own";
  const others = Map.groupBy(
    hosts.filter((host) => !isOwn(host)),
    ({ service }) => service?.namespace ?? "",
  );
  return [...[...others].sort(([a], [b]) => compareText(a, b)).flatMap(([, alike]) => alike), ...hosts.filter(isOwn)];
}

/** Tables are named by their port, by host and port where the protocol is sniffed, or by the socket. */
function subjectOf(scope: Scope, name: string): TableSubject {
  if (name === HTTP_PROXY_TABLE) return { anyPortOf: scope.egress };
  const colon = name.lastIndexOf(":");
  const port = Number(colon < 0 ? name : name.slice(colon + 1));
  if (!Number.isInteger(port)) return { anyPortOf: scope.egress.filter(({ bind }) => bind === name) };
  const egress = egressFor(scope, port);
  if (egress?.port?.protocol === "HTTP_PROXY") return { anyPortOf: [egress] };
  return { port, host: colon < 0 ? undefined : name.slice(0, colon), egress };
}

/** The egress listener that names the port, else the one that names none. */
function egressFor(scope: Scope, port: number): EgressScope | undefined {
  return scope.egress.find((egress) => egress.port?.number === port) ?? scope.egress.find((egress) => egress.port === undefined);
}

/** Hosts of every port, each under its names with the port; whoever names none means 80. */
function hostsWithPorts(parts: PlanParts, key: Naming, egress: EgressScope): readonly PlannedHost[] {
  const numbers = egress.services.flatMap(
    (ref) =>
      parts.ctx.registry
        .service(ref)
        ?.ports.filter(({ protocol }) => isHttp(protocol) || protocol === "Auto")
        .map(({ number }) => number) ?? [],
  );
  return [...new Set(numbers)].flatMap((port) =>
    subjectHosts(parts, key, { port, host: undefined, egress, anyPort: true }).map((host) => ({
      ...host,
      anyPort: true as const,
      domains: sharedDomains(host.domains.names.flatMap((domain) => (port === 80 ? [domain, `${domain}:${port}`] : [`${domain}:${port}`]))),
    })),
  );
}

function subjectHosts(parts: PlanParts, key: Naming, subject: PortSubject): readonly PlannedHost[] {
  const { egress, port } = subject;
  if (egress === undefined) return [];
  const services = servicesAt(parts, key, subject);
  const claimants = parts.claimants(egress.virtualServices);
  const { owners, bare } = claimsOf(parts.ctx.registry, { ...subject, egress, services, claimants });
  const name = (host: string): string => `${host}:${port}`;
  const declared = services.map((service) => {
    const { host } = service;
    return planned({ name: name(host), host, port, domains: domainsFor(service, key.dnsDomain), service, vs: owners.get(host) ?? NOBODY });
  });
  const undeclared = [...bare]
    .filter(([host]) => subject.host === undefined || subject.host === host)
    .map(([host, vs]) => planned({ name: name(host), host, port, domains: sharedDomains([host]), service: undefined, vs }));
  return [...declared, ...undeclared];
}

const NOBODY: readonly string[] = [];

function servicesAt({ plainHosts }: PlanParts, key: Naming, { egress, host: only, port }: PortSubject): readonly PlainHost[] {
  const atPort = plainHosts({ port, dnsCapture: key.dnsCapture, remoteCluster: key.remoteCluster, headers: key.headers });
  return (egress?.services ?? [])
    .filter(({ host, ports }) => (only === undefined || only === host) && (ports === undefined || ports.includes(port)))
    .map((ref) => atPort.get(serviceKey(ref)))
    .filter((host) => host !== undefined);
}

function domainsFor(service: PlainHost, dnsDomain: string): EncodedDomains {
  const named = ({ host, domains }: Pick<PlainHost, "host" | "domains">): EncodedDomains => {
    const known = domains[nearnessOf(host, dnsDomain)];
    const completed = completedNames(host, dnsDomain);
    return completed.length === 0 ? known : sharedDomains([...known.names, ...completed]);
  };
  if (service.aliases === undefined) return named(service);
  return sharedDomains([named(service), ...service.aliases.map(named)].flatMap(({ names }) => names));
}
