import { compareSpecificity, matchesHost } from "../../base/hostname.ts";
import type { HeaderChanges, RouteInput, VirtualHostInput } from "../../envoy/route/route-input.ts";
import type { Session } from "../../model/session.ts";
import type { GatewayQuery, GatewayServer, GenerateContext, ResolvedVirtualService } from "../context.ts";
import { blackHoleHost, sessionOfHost, siteFor, virtualHost } from "./hosts.ts";
import type { RouteHeaders } from "./route-headers.ts";
import { takesEverything } from "./translate/match.ts";
import { translateRules } from "./translate/rule.ts";

/** A virtual host and the domains it answers to. */
export interface GatewayHost {
  readonly input: VirtualHostInput;
  readonly domains: readonly string[];
}

export interface GatewayTableKey {
  readonly query: GatewayQuery;
  readonly headers: RouteHeaders;
  readonly name: string;
}

/** What is known of a host while its servers and VirtualServices are gone through. */
interface HostParts {
  readonly port: number;
  /** Stands for each list in `routes`: hosts with equal sources have equal routes. */
  readonly sources: readonly string[];
  readonly routes: readonly RouteInput[];
  readonly requireTls: boolean;
}

/** The virtual hosts of a router's route table; undefined when no server has a table of that name. */
export function gatewayHosts(ctx: GenerateContext, key: GatewayTableKey): readonly GatewayHost[] | undefined {
  const servers = ctx.lookups
    .mergedGateway(key.query)
    .ports.flatMap(({ servers: all }) => all)
    .filter(({ routeName }) => routeName === key.name);
  const [first] = servers;
  if (first === undefined) return undefined;
  const hosts = new Map<string, HostParts>();
  for (const server of servers) addServer(ctx, { key, server, hosts });
  if (hosts.size === 0) return [{ input: blackHoleHost(first.server.port?.number ?? first.port), domains: ["*"] }];
  return collapsed(hosts, key.headers, (host) => sessionOfHost(ctx, host, key.query.namespace));
}

/** Hosts with the same routes are one virtual host with several domains, named after the most specific: routes are large, domains are not. */
function collapsed(
  hosts: ReadonlyMap<string, HostParts>,
  headers: RouteHeaders,
  sessionOf: (host: string) => Session | undefined,
): readonly GatewayHost[] {
  const sorted = [...hosts].sort(([a], [b]) => compareSpecificity(a, b));
  const groups = Map.groupBy(
    sorted,
    ([host, { sources, requireTls }]) => `${requireTls} ${sources.join()} ${JSON.stringify(sessionOf(host)) ?? ""}`,
  );
  return [...groups.values()].flatMap((members) => {
    const [first] = members;
    if (first === undefined) return [];
    const [host, { port, routes, requireTls }] = first;
    const session = sessionOf(host);
    const input = {
      ...virtualHost(`${host}:${port}`, catchAllsLast(routes), headers),
      requireTls,
      ...(session !== undefined && { session }),
    };
    return [{ input, domains: members.map(([domain]) => domain) }];
  });
}

interface Adding {
  readonly key: GatewayTableKey;
  readonly server: GatewayServer;
  readonly hosts: Map<string, HostParts>;
}

/** Several VirtualServices may share a host on a gateway: their routes follow each other in order of precedence. */
function addServer(ctx: GenerateContext, { key, server: entry, hosts }: Adding): void {
  const port = entry.server.port?.number ?? entry.port;
  const redirect = entry.server.tls?.httpsRedirect === true;
  const add = (host: string, source: string | undefined, routes: readonly RouteInput[]): void => {
    const known = hosts.get(host);
    hosts.set(host, {
      port: known?.port ?? port,
      sources: source === undefined ? (known?.sources ?? []) : [...(known?.sources ?? []), source],
      routes: [...(known?.routes ?? []), ...routes],
      requireTls: redirect || known?.requireTls === true,
    });
  };
  for (const vsKey of ctx.lookups.gatewayVirtualServices(entry.gateway, key.query.namespace)) {
    const vs = ctx.lookups.virtualService(vsKey);
    const shared = vs === undefined || vs.spec.http.length === 0 ? [] : hostsFor(entry, vs);
    if (vs === undefined || shared.length === 0) continue;
    const routes = routesOf(ctx, { key, entry, vs });
    if (routes.length > 0) for (const host of shared) add(host, `${entry.gateway}:${port}:${vsKey}`, routes);
  }
  if (redirect) for (const { host } of entry.hosts) add(host.toLowerCase(), undefined, []);
}

function routesOf(
  ctx: GenerateContext,
  { key, entry, vs }: { readonly key: GatewayTableKey; readonly entry: GatewayServer; readonly vs: ResolvedVirtualService },
): readonly RouteInput[] {
  const { namespace, labels } = key.query;
  const port = entry.server.port?.number ?? entry.port;
  const defaultPort = (destination: string): number => singlePort(ctx, destination, namespace) ?? port;
  const place = { gateway: entry.gateway, port, secure: entry.server.tls !== undefined, defaultPort };
  const routes = translateRules(vs, siteFor(ctx, { namespace, labels, headers: key.headers }, place));
  return entry.http3 ? routes.map((route) => ({ ...route, response: withAltSvc(route.response, port) })) : routes;
}

/** Clients learn of HTTP/3 from answers over TCP; they remember it for a day. */
const withAltSvc = (changes: HeaderChanges, port: number): HeaderChanges => ({
  ...changes,
  add: [...changes.add, { name: "alt-svc", value: `h3=":${port}"; ma=86400`, append: true }],
});

/** Hosts both sides accept, the narrower of the two where one is a wildcard. */
function hostsFor(entry: GatewayServer, vs: ResolvedVirtualService): readonly string[] {
  const server = entry.hosts.filter((host) => host.namespace === "*" || host.namespace === vs.namespace).map(({ host }) => host);
  const pairs = vs.spec.hosts.flatMap((wanted) =>
    server.map((offered) => (matchesHost(offered, wanted) ? wanted : matchesHost(wanted, offered) ? offered : undefined)),
  );
  return [...new Set(pairs.filter((host) => host !== undefined).map((host) => host.toLowerCase()))];
}

/** A destination without a port means the only port of its service. */
function singlePort(ctx: GenerateContext, host: string, namespace: string): number | undefined {
  const ref = ctx.lookups.visibleService(host, namespace);
  const ports = ref === undefined ? undefined : ctx.registry.service(ref)?.ports;
  return ports?.length === 1 ? ports[0]?.number : undefined;
}

/** A rule for everything may come from one object and narrower ones from another: the narrower are asked first. */
function catchAllsLast(routes: readonly RouteInput[]): readonly RouteInput[] {
  return [...routes.filter(({ match }) => !takesEverything(match)), ...routes.filter(({ match }) => takesEverything(match))];
}
