import { matchesHost } from "../../base/hostname.ts";
import type { Query } from "../../engine/index.ts";
import type { VirtualHostInput } from "../../envoy/route/route-input.ts";
import { type EncodedDomains, encodeDomains, type TableHost } from "../../envoy/route/route-table.ts";
import { isHttp } from "../../model/protocol.ts";
import { serviceKey } from "../../model/service.ts";
import type { EgressScope, GenerateContext, ResolvedVirtualService, Scope, ScopeKey } from "../context.ts";
import { nearnessOf } from "./domains.ts";
import { plainHost, type RouteClient, unknownHost } from "./hosts.ts";
import { type PlainHost, type PortQuery, rulesOf } from "./plain-hosts.ts";
import type { RouteHeaders } from "./route-headers.ts";
import type { RuledHostKey } from "./ruled-hosts.ts";

/** What decides a sidecar's route table. */
export interface SidecarTableKey {
  readonly scope: ScopeKey;
  readonly name: string;
  readonly dnsDomain: string;
  readonly dnsCapture: boolean;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly headers: RouteHeaders;
}

/** Where tables get their parts from. */
export interface TableParts {
  readonly ctx: GenerateContext;
  readonly body: Query<VirtualHostInput, Uint8Array>;
  readonly plainHosts: Query<PortQuery, ReadonlyMap<string, PlainHost>>;
  /** Body of a host that a VirtualService speaks for; undefined where none of its rules applies. */
  readonly ruledHost: (key: RuledHostKey) => Uint8Array | undefined;
}

/** A port of the mesh, of one host where the protocol is found out by sniffing, as an egress listener sees it. */
interface PortSubject {
  readonly port: number;
  readonly host: string | undefined;
  readonly egress: EgressScope | undefined;
}

/** Which part of the mesh a table speaks for: a port, or every port, and then clients have to name it. */
type TableSubject = PortSubject | { readonly anyPortOf: readonly EgressScope[] };

/** The explicit HTTP proxy of a workload (`HTTP_PROXY_PORT`). */
const HTTP_PROXY_TABLE = "http_proxy";

const EVERY_HOST = encodeDomains(["*"]);

/** The virtual hosts of a table, and whether clients may name any port beside a host, or must name the right one. */
export interface TableHosts {
  readonly hosts: readonly TableHost[];
  readonly ignorePort: boolean;
}

/**
 * The virtual hosts of a sidecar's route table; the last one says what becomes of unknown hosts. The table of one sniffed service has
 * that service alone, under any name, as Istio has it: whoever called its address means it.
 */
export function sidecarHosts(parts: TableParts, key: SidecarTableKey): TableHosts {
  const scope = parts.ctx.lookups.scope(key.scope);
  const catchAll: TableHost = { body: parts.body(unknownHost(scope, key.headers)), domains: EVERY_HOST };
  const subject = subjectOf(scope, key.name);
  if ("anyPortOf" in subject) {
    const hosts = subject.anyPortOf.flatMap((egress) => hostsWithPorts(parts, key, egress));
    return { hosts: [...firstOfEachDomain(hosts), catchAll], ignorePort: false };
  }
  const hosts = subjectHosts(parts, key, subject);
  if (subject.host === undefined) return { hosts: [...hosts, catchAll], ignorePort: true };
  return { hosts: hosts.slice(0, 1).map(({ body }) => ({ body, domains: EVERY_HOST })), ignorePort: true };
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
function hostsWithPorts(parts: TableParts, key: SidecarTableKey, egress: EgressScope): readonly TableHost[] {
  const numbers = egress.services.flatMap(
    (ref) =>
      parts.ctx.registry
        .service(ref)
        ?.ports.filter(({ protocol }) => isHttp(protocol) || protocol === "Auto")
        .map(({ number }) => number) ?? [],
  );
  return [...new Set(numbers)].flatMap((port) =>
    subjectHosts(parts, key, { port, host: undefined, egress }).map(({ body, domains }) => ({
      body,
      domains: encodeDomains(domains.names.flatMap((domain) => (port === 80 ? [domain, `${domain}:${port}`] : [`${domain}:${port}`]))),
    })),
  );
}

/** Envoy refuses a table that has a domain twice: egress listeners may name the same hosts. */
function firstOfEachDomain(hosts: readonly TableHost[]): readonly TableHost[] {
  const taken = new Set<string>();
  return hosts.flatMap(({ body, domains }) => {
    const free = domains.names.filter((name) => !taken.has(name));
    for (const name of free) taken.add(name);
    if (free.length === 0) return [];
    return [{ body, domains: free.length === domains.names.length ? domains : encodeDomains(free) }];
  });
}

function subjectHosts(parts: TableParts, key: SidecarTableKey, subject: PortSubject): readonly TableHost[] {
  const { egress, port } = subject;
  if (egress === undefined) return [];
  const client: RouteClient = { namespace: key.scope.namespace, labels: key.labels, headers: key.headers };
  const services = servicesAt(parts, key, subject);
  const { owners, bare } = claims(parts.ctx, { egress, services, port });
  const domains = (host: PlainHost): EncodedDomains => domainsFor(host, key.dnsDomain);
  const declared = services.flatMap((service): readonly TableHost[] => {
    const vs = owners.get(service.host);
    const body =
      vs === undefined ? plainBody(parts, client, { service, port }) : parts.ruledHost({ vs: vs.key, host: service.host, port, client });
    return body === undefined
      ? [{ body: plainBody(parts, client, { service, port }), domains: domains(service) }]
      : [{ body, domains: domains(service) }];
  });
  const undeclared = [...bare]
    .filter(([host]) => subject.host === undefined || subject.host === host)
    .flatMap(([host, vs]) => {
      const body = parts.ruledHost({ vs: vs.key, host, port, client });
      return body === undefined ? [] : [{ body, domains: encodeDomains([host]) }];
    });
  return [...declared, ...undeclared];
}

function servicesAt({ plainHosts }: TableParts, key: SidecarTableKey, { egress, host: only, port }: PortSubject): readonly PlainHost[] {
  const atPort = plainHosts({ port, dnsCapture: key.dnsCapture, headers: key.headers });
  return (egress?.services ?? [])
    .filter(({ host, ports }) => (only === undefined || only === host) && (ports === undefined || ports.includes(port)))
    .map((ref) => atPort.get(serviceKey(ref)))
    .filter((host) => host !== undefined);
}

function domainsFor(service: PlainHost, dnsDomain: string): EncodedDomains {
  const named = ({ host, domains }: Pick<PlainHost, "host" | "domains">): EncodedDomains => domains[nearnessOf(host, dnsDomain)];
  if (service.aliases === undefined) return named(service);
  return encodeDomains([named(service), ...service.aliases.map(named)].flatMap(({ names }) => names));
}

/** A client with a DestinationRule of its own for the host may hash requests differently; all others share one body. */
function plainBody(
  { ctx, body }: TableParts,
  client: RouteClient,
  { service, port }: { readonly service: PlainHost; readonly port: number },
): Uint8Array {
  const shared = client.labels === undefined && rulesOf(ctx, client.namespace, service) === service.rules;
  return shared ? service.body : body(plainHost(ctx, client, { namespace: service.namespace, host: service.host, port }));
}

interface Claims {
  /** The VirtualService that speaks for each declared host. */
  readonly owners: ReadonlyMap<string, ResolvedVirtualService>;
  /** Hosts that only VirtualServices name. */
  readonly bare: ReadonlyMap<string, ResolvedVirtualService>;
}

/**
 * Who speaks for which host. An exact host goes before a wildcard, then the first object in order of precedence has it.
 * Hosts without a service on this port are served beside those that have one, and on port 80 always, because that is where people
 * who call them expect it (Istio does the same).
 */
function claims(
  ctx: GenerateContext,
  { egress, services, port }: { readonly egress: EgressScope; readonly services: readonly PlainHost[]; readonly port: number },
): Claims {
  const resolved = egress.virtualServices
    .map((vs) => ctx.lookups.virtualService(vs))
    .filter((vs) => vs !== undefined)
    .filter(({ spec }) => spec.http.length > 0);
  const declared = new Set(services.map(({ host }) => host));
  const owners = new Map<string, ResolvedVirtualService>();
  const bare = new Map<string, ResolvedVirtualService>();
  const claim = (host: string, vs: ResolvedVirtualService, into: Map<string, ResolvedVirtualService>): void => {
    if (!into.has(host)) into.set(host, vs);
  };
  for (const vs of resolved) for (const host of vs.spec.hosts) if (declared.has(host)) claim(host, vs, owners);
  const wildcards = resolved
    .flatMap((vs) => vs.spec.hosts.filter((host) => host.startsWith("*")).map((host) => ({ host, vs })))
    .sort((a, b) => b.host.length - a.host.length);
  if (wildcards.length > 0) {
    for (const { host } of services) {
      const best = wildcards.find((wildcard) => matchesHost(wildcard.host, host));
      if (best !== undefined) claim(host, best.vs, owners);
    }
  }
  const speaking = new Set(owners.values());
  for (const vs of resolved) {
    if (port !== 80 && !speaking.has(vs)) continue;
    for (const host of vs.spec.hosts)
      if (!declared.has(host) && !(host.startsWith("*") && services.some((service) => matchesHost(host, service.host))))
        claim(host, vs, bare);
  }
  return { owners, bare };
}
