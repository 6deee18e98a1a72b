import { matchesLabels } from "../../base/labels.ts";
import type { ServiceSpec } from "../../config/kinds/service/service.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import type { Gateway, Server } from "../../gen/istio/networking/v1alpha3/gateway_pb.js";
import { ServerTLSSettings_TLSmode as TlsMode } from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { ServiceInstance } from "../../model/endpoint.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { GatewayPort, GatewayQuery, GatewayServer, GenerateContext, MergedGateway } from "../context.ts";
import { byPrecedence } from "./precedence.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "registry" | "settings">;

/**
 * What of a router matters for the Gateways that select it. A Service in front of it may map port 80 to 8080: then the listener
 * opens on 8080, while routes and matches go on saying 80.
 */
export function gatewayQueryOf(
  ctx: Context,
  view: Pick<ProxyView, "namespace" | "labels" | "addresses" | "remoteCluster" | "pod" | "claim">,
): GatewayQuery {
  const hint = { cluster: view.remoteCluster, pod: view.pod, claim: view.claim };
  const instances = view.addresses.flatMap((address) => ctx.registry.instancesAt(address, view.namespace, hint));
  const targets = new Map<number, Set<number>>();
  for (const { servicePort, endpoint } of instances) {
    targets.set(servicePort.number, (targets.get(servicePort.number) ?? new Set()).add(endpoint.port));
  }
  const targetPorts = [...targets]
    .map(([port, numbers]) => ({ port, targets: [...numbers].sort((a, b) => a - b) }))
    .sort((a, b) => a.port - b.port);
  const query = { namespace: view.namespace, labels: view.labels, targetPorts };
  return ctx.settings.quicListeners ? { ...query, udpPorts: udpPortsOf(ctx, instances) } : query;
}

/** Ports of the Services in front of a router that are open for UDP: the registry leaves those out, for they are not proxied otherwise. */
function udpPortsOf({ registry, inputs }: Context, instances: readonly ServiceInstance[]): readonly number[] {
  const keys = new Set(instances.flatMap(({ service }) => registry.service(service)?.objectKey ?? []));
  const ports = [...keys].flatMap((key) => {
    const object = inputs.objects.get(key);
    return object?.kind === "Service" ? (object.spec as ServiceSpec).ports.filter(({ protocol }) => protocol === "UDP") : [];
  });
  return [...new Set(ports.map(({ port }) => port))].sort((a, b) => a - b);
}

/** All servers of all Gateways that select a router, grouped by the port they listen on. Conflicts are settled here, once, for listeners and routes. */
export function defineMergedGateway(ctx: Context): Query<GatewayQuery, MergedGateway> {
  return ctx.engine.query<GatewayQuery, MergedGateway>({
    name: "mergedGateway",
    id: (query) => JSON.stringify(query),
    compute: (query) => {
      const gateways = (ctx.inputs.objects.list("kind", "Gateway") as readonly ConfigObject<Gateway>[])
        .filter(({ spec }) => matchesLabels(spec.selector, query.labels))
        .toSorted(byPrecedence);
      const servers = gateways.flatMap((gateway) => gateway.spec.servers.flatMap((server) => serversOf(gateway, server, query)));
      const byPort = Map.groupBy(servers, ({ port, bind }) => `${port}|${bind}`);
      return { ports: [...byPort.values()].flatMap(mergePort).sort((a, b) => a.port - b.port || (a.bind < b.bind ? -1 : 1)) };
    },
  });
}

function serversOf(gateway: ConfigObject<Gateway>, server: Server, query: GatewayQuery): readonly GatewayServer[] {
  const number = server.port?.number ?? 0;
  const targets = query.targetPorts.find(({ port }) => port === number)?.targets ?? [number];
  const family = familyOf(server);
  return targets.map((port) => ({
    gateway: `${gateway.namespace}/${gateway.name}`,
    namespace: gateway.namespace,
    server,
    family,
    port,
    // All addresses, said or not, are one listener.
    bind: server.bind === "0.0.0.0" ? "" : server.bind,
    hosts: server.hosts.map((text) => hostOf(text, gateway.namespace)),
    routeName: routeNameOf({ family, port, number, gateway, server }),
    http3: family === "https" && query.udpPorts?.includes(number) === true,
  }));
}

function hostOf(text: string, own: string): { readonly namespace: string; readonly host: string } {
  const slash = text.indexOf("/");
  const namespace = slash < 0 ? "*" : text.slice(0, slash);
  return { namespace: namespace === "." ? own : namespace, host: text.slice(slash + 1) };
}

/** `http`: one route table for all plain servers of the port; `https`: TLS ends here, a table each; `tls`, `tcp`: bytes. */
function familyOf(server: Server): GatewayServer["family"] {
  const protocol = (server.port?.protocol ?? "").toUpperCase();
  if (["HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTP_PROXY"].includes(protocol)) return "http";
  const passes = server.tls?.mode === TlsMode.PASSTHROUGH || server.tls?.mode === TlsMode.AUTO_PASSTHROUGH;
  if (protocol === "HTTPS" && !passes) return "https";
  if (protocol === "HTTPS" || protocol === "TLS" || server.tls !== undefined) return "tls";
  return "tcp";
}

interface RouteNameParts {
  readonly family: GatewayServer["family"];
  readonly port: number;
  readonly number: number;
  readonly gateway: ConfigObject<Gateway>;
  readonly server: Server;
}

function routeNameOf({ family, port, number, gateway, server }: RouteNameParts): string | undefined {
  const bind = server.bind === "" ? "" : `.${server.bind}`;
  if (family === "http") return `http.${port}${bind}`;
  return family === "https" ? `https.${number}.${server.port?.name ?? ""}.${gateway.name}.${gateway.namespace}${bind}` : undefined;
}

/**
 * Servers with TLS are told apart by the names clients say. The first one without takes what says none, and from there on only more HTTP
 * beside HTTP fits; what does not fit is left out.
 */
function mergePort(all: readonly GatewayServer[]): readonly GatewayPort[] {
  const servers = withOwnHosts(all);
  const [first] = servers;
  if (first === undefined) return [];
  const at = servers.findIndex((server) => kindOf(server) !== "tls");
  const [secured, rest] = at < 0 ? [servers, []] : [servers.slice(0, at), servers.slice(at)];
  const [plain] = rest;
  const fitting =
    plain?.family === "http"
      ? rest.filter(({ family }) => family === "http").map((server) => ({ ...server, routeName: plain.routeName }))
      : rest.slice(0, 1);
  return [{ port: first.port, bind: first.bind, kind: kindOf(first), servers: [...secured, ...fitting] }];
}

/** A server with TLS settings that lists a host which an earlier one has is left out, as in Istio. */
function withOwnHosts(servers: readonly GatewayServer[]): readonly GatewayServer[] {
  const seen = new Set<string>();
  return servers.filter(({ server, hosts }) => {
    if (server.tls === undefined) return true;
    const names = hosts.map(({ namespace, host }) => `${namespace}/${host}`);
    if (names.some((name) => seen.has(name))) return false;
    for (const name of names) seen.add(name);
    return true;
  });
}

const kindOf = ({ family }: Pick<GatewayServer, "family">): GatewayPort["kind"] =>
  family === "https" || family === "tls" ? "tls" : family;

/** What a server makes of its port. */
export const serverKind = (server: Server): GatewayPort["kind"] => kindOf({ family: familyOf(server) });
