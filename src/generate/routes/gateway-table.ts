import { matchesHost } from "../../base/hostname.ts";
import type { RouteInput, VirtualHostInput } from "../../envoy/route/route-input.ts";
import type { GatewayQuery, GatewayServer, GenerateContext } from "../context.ts";
import { blackHoleHost, siteFor, virtualHost } from "./hosts.ts";
import { takesEverything } from "./translate/match.ts";
import { translateRules } from "./translate/rule.ts";

/** A virtual host and the domain it answers to. */
export interface GatewayHost {
  readonly input: VirtualHostInput;
  readonly domain: string;
}

export interface GatewayTableKey {
  readonly query: GatewayQuery;
  readonly name: string;
}

/** The virtual hosts of a router's route table; undefined when no server has a table of that name. */
export function gatewayHosts(ctx: GenerateContext, key: GatewayTableKey): readonly GatewayHost[] | undefined {
  const servers = ctx.lookups
    .mergedGateway(key.query)
    .ports.flatMap(({ servers: all }) => all)
    .filter(({ routeName }) => routeName === key.name);
  const [first] = servers;
  if (first === undefined) return undefined;
  const hosts = new Map<string, VirtualHostInput>();
  for (const server of servers) addServer(ctx, key, server, hosts);
  if (hosts.size === 0) return [{ input: blackHoleHost(first.server.port?.number ?? first.port), domain: "*" }];
  return [...hosts]
    .map(([domain, input]) => ({ input: { ...input, routes: catchAllsLast(input.routes) }, domain }))
    .sort((a, b) => (a.input.name < b.input.name ? -1 : 1));
}

/** Several VirtualServices may share a host on a gateway: their routes follow each other in order of precedence. */
function addServer(ctx: GenerateContext, key: GatewayTableKey, entry: GatewayServer, hosts: Map<string, VirtualHostInput>): void {
  const number = entry.server.port?.number ?? entry.port;
  const redirect = entry.server.tls?.httpsRedirect === true;
  const { namespace, labels } = key.query;
  for (const vsKey of ctx.lookups.gatewayVirtualServices(entry.gateway, namespace)) {
    const vs = ctx.lookups.virtualService(vsKey);
    if (vs === undefined || vs.spec.http.length === 0) continue;
    const shared = sharedHosts(
      entry.hosts.filter((host) => host.namespace === "*" || host.namespace === vs.namespace).map(({ host }) => host),
      vs.spec.hosts,
    );
    for (const host of shared) {
      const defaultPort = (destination: string): number => singlePort(ctx, destination, namespace) ?? number;
      const site = siteFor(
        ctx,
        { namespace, labels },
        { gateway: entry.gateway, port: number, secure: entry.family === "https", operationHost: host, defaultPort },
      );
      const routes = translateRules(vs, site);
      const known = hosts.get(host);
      hosts.set(host, {
        ...(known ?? virtualHost(`${host}:${number}`, [])),
        routes: [...(known?.routes ?? []), ...routes],
        requireTls: redirect || known?.requireTls === true,
      });
    }
  }
  if (!redirect) return;
  for (const { host } of entry.hosts) if (!hosts.has(host)) hosts.set(host, { ...virtualHost(`${host}:${number}`, []), requireTls: true });
}

/** Hosts both sides accept, the narrower of the two where one is a wildcard. */
function sharedHosts(server: readonly string[], service: readonly string[]): readonly string[] {
  const pairs = service.flatMap((wanted) =>
    server.map((offered) => (matchesHost(offered, wanted) ? wanted : matchesHost(wanted, offered) ? offered : undefined)),
  );
  return [...new Set(pairs.filter((host) => host !== undefined))];
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
