import { hostsOverlap } from "../../../base/hostname.ts";
import type { HttpManagerInput } from "../../../envoy/filters/http-connection-manager.ts";
import type { PolicyFilters } from "../../../envoy/filters/policy-filters.ts";
import type { FilterChainInput } from "../../../envoy/listener/filter-chain.ts";
import type { ListenerInput } from "../../../envoy/listener/listener.ts";
import type { CredentialHolder } from "../../../envoy/tls/index.ts";
import type { MeshConfig } from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { ServerTLSSettings_TLSmode as Mode } from "../../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { CertificateFiles, LocalServer } from "../../../model/proxy.ts";
import type { GatewayPort, GatewayServer, GenerateContext, ResolvedVirtualService } from "../../context.ts";
import { extensionsAt } from "../../extensions/chain-extensions.ts";
import { byRoutes, type Client, type Forwarding } from "../l4-routes.ts";
import { matchesPort } from "../outbound/l4-rules.ts";
import { HANDSHAKE_TIMEOUT_MS } from "../outbound/tcp-chains.ts";
import { withoutOverlaps } from "../overlaps.ts";
import { passesThrough, serverTls } from "../server-tls.ts";
import { type ChainSettings, decodeOf } from "../settings/chain-settings.ts";
import { type Families, listenerName, wildcards } from "../traits.ts";
import { sniRoutedChains } from "./auto-passthrough.ts";

export interface GatewayListenerParts {
  readonly ctx: Pick<GenerateContext, "registry" | "lookups">;
  readonly client: Client;
  readonly families: Families;
  readonly hasIdentity: LocalServer;
  /** A certificate in files that stands in for the mesh's. */
  readonly serverFiles: CertificateFiles | undefined;
  /** Who has the credentials that the control plane does not have. */
  readonly holder: CredentialHolder;
  readonly settings: ChainSettings;
  readonly policies: PolicyFilters | undefined;
  readonly port: GatewayPort;
  readonly mesh: MeshConfig | undefined;
}

/** Name of the listener of a port. */
export const gatewayListenerName = (port: Pick<GatewayPort, "bind" | "port">, families: Families): string =>
  listenerName(port.bind || (wildcards(families)[0] ?? ""), port.port);

/** The listener of one port of a router. Undefined where nothing could be behind it, e.g. a TCP server that no VirtualService routes. */
export function gatewayListener(parts: GatewayListenerParts): ListenerInput | undefined {
  const { port, families, settings } = parts;
  const name = gatewayListenerName(port, families);
  const chainsOf = (servers: readonly GatewayServer[]) => servers.flatMap((server) => serverChains(parts, server, name));
  const { secured = [], plain = [] } = Object.groupBy(port.servers, ({ family }) =>
    family === "https" || family === "tls" ? "secured" : "plain",
  );
  const ofTls = chainsOf(secured);
  // Plain HTTP of a port is one chain, and one route table, for all its servers.
  const chains = withoutOverlaps([...ofTls, ...chainsOf(plain.slice(0, 1))]);
  if (chains.length === 0) return undefined;
  return {
    name,
    bind: { addresses: port.bind === "" ? wildcards(families) : [port.bind], port: port.port },
    direction: "outbound",
    bindToPort: true,
    filters: { ...(settings.proxyProtocol && { proxyProtocol: true }), ...(ofTls.length > 0 && { tls: { on: "all" } }) },
    chains,
    accessLogs: settings.listenerAccessLogs,
    ...(settings.bufferLimitBytes !== undefined && { bufferLimitBytes: settings.bufferLimitBytes }),
  };
}

/** Name of the listener beside it that serves HTTP/3. */
export const quicListenerName = (name: string): string => `udp_${name}`;

/** The listener that serves HTTP/3 for the HTTPS servers of a port: the same routes, the same certificates, over UDP. */
export function quicListener(parts: GatewayListenerParts): ListenerInput | undefined {
  const { port, families, settings } = parts;
  const name = quicListenerName(gatewayListenerName(port, families));
  const chains = withoutOverlaps(
    port.servers.filter(({ http3 }) => http3).flatMap((server) => serverChains(parts, server, name).map(overQuic)),
  );
  if (chains.length === 0) return undefined;
  return {
    name,
    bind: { addresses: port.bind === "" ? wildcards(families) : [port.bind], port: port.port, udp: true },
    direction: "outbound",
    bindToPort: true,
    filters: {},
    chains,
    accessLogs: settings.listenerAccessLogs,
  };
}

/** QUIC cannot ask clients for certificates yet, in Envoy. */
function overQuic(chain: FilterChainInput): FilterChainInput {
  const { tls, content } = chain;
  if (tls === undefined || !("http" in content)) return chain;
  return {
    ...chain,
    quic: true,
    tls: { ...tls, alpn: ["h3"], requireClientCertificate: false },
    content: { http: { ...content.http, http3: true } },
  };
}

/**
 * Who may come in is decided on every chain, also where TLS passes through; not where it goes on to whatever cluster of the mesh it names, as
 * between networks: identities are inside of it, so the workload at its end decides, and rules made for the edge would cut the networks off.
 */
function serverChains(parts: GatewayListenerParts, server: GatewayServer, name: string): readonly FilterChainInput[] {
  if (server.server.tls?.mode === Mode.AUTO_PASSTHROUGH) return sniRoutedChains(parts, server);
  return edgeChains(parts, server, name).map((one) => withPolicies(one, parts.policies));
}

function withPolicies(chain: FilterChainInput, policies: PolicyFilters | undefined): FilterChainInput {
  if (policies === undefined) return chain;
  const { content } = chain;
  return {
    ...chain,
    content: "http" in content ? { ...content, http: { ...content.http, policies } } : { tcp: { ...content.tcp, policies } },
  };
}

function edgeChains(parts: GatewayListenerParts, server: GatewayServer, name: string): readonly FilterChainInput[] {
  const { tls } = server.server;
  if (server.family === "tcp") return chain(tcpContent(parts, server), {});
  if (server.family === "http") {
    return server.routeName === undefined ? [] : chain(httpContent(parts, server, { name, rds: server.routeName }), {});
  }
  if (tls === undefined || passesThrough(tls)) return throughChains(parts, server);
  const ended = serverTls(tls, { mesh: parts.mesh, agent: parts.hasIdentity, files: parts.serverFiles, holder: parts.holder });
  if (ended === undefined) return [];
  const serverNames = sniOf(server);
  const content = server.routeName === undefined ? tcpContent(parts, server) : httpContent(parts, server, { name, rds: server.routeName });
  return chain(content, { ...(serverNames.length > 0 && { serverNames }) }).map((one) => ({ ...one, tls: ended }));
}

/** Hosts of a server are the names clients say in TLS; `*` is any, or none. */
function sniOf({ hosts }: GatewayServer): readonly string[] {
  const names = [...new Set(hosts.map(({ host }) => host))];
  return names.includes("*") ? [] : names;
}

/** TLS that is not ended here is routed by the names that VirtualServices list. */
function throughChains(parts: GatewayListenerParts, server: GatewayServer): readonly FilterChainInput[] {
  return virtualServicesOf(parts, server).flatMap(({ spec, name, namespace }) =>
    spec.tls.flatMap((rule) =>
      rule.match
        .filter((match) => matchesPort(match, portOf(server)))
        .flatMap(({ sniHosts }) => {
          const tcp = byRoutes(parts.ctx, { routes: rule.route, title: `${name}.${namespace}` }, forwardingOf(parts, server));
          return tcp === undefined ? [] : chain({ tcp }, { ...(!sniHosts.includes("*") && { serverNames: sniHosts }) });
        }),
    ),
  );
}

/** The first TCP rule that matches takes the whole port. */
function tcpContent(parts: GatewayListenerParts, server: GatewayServer): FilterChainInput["content"] | undefined {
  const port = portOf(server);
  for (const { spec, name, namespace } of virtualServicesOf(parts, server)) {
    const rule = spec.tcp.find(({ match }) => match.length === 0 || match.some((one) => matchesPort(one, port)));
    const tcp =
      rule === undefined
        ? undefined
        : byRoutes(parts.ctx, { routes: rule.route, title: `${name}.${namespace}` }, forwardingOf(parts, server));
    if (tcp !== undefined) return { tcp };
  }
  return undefined;
}

/** VirtualServices bound to the server's Gateway that share a host with it, from namespaces it allows. */
function virtualServicesOf({ ctx, client }: GatewayListenerParts, { gateway, hosts }: GatewayServer): readonly ResolvedVirtualService[] {
  return ctx.lookups
    .gatewayVirtualServices(gateway, client.namespace)
    .map((key) => ctx.lookups.virtualService(key))
    .filter((found) => found !== undefined)
    .filter((found) =>
      hosts.some(
        ({ namespace, host }) =>
          (namespace === "*" || namespace === found.namespace) && found.spec.hosts.some((own) => hostsOverlap(own, host)),
      ),
    );
}

const portOf = ({ gateway, server }: GatewayServer) => ({ port: server.port?.number ?? 0, gateway });

const forwardingOf = ({ client, settings }: GatewayListenerParts, { server }: GatewayServer): Forwarding => ({
  client,
  settings,
  port: server.port?.number ?? 0,
  ...decodeOf(server.port?.protocol ?? "", settings),
});

function chain(content: FilterChainInput["content"] | undefined, match: FilterChainInput["match"]): readonly FilterChainInput[] {
  return content === undefined ? [] : [{ match, content, handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS }];
}

/** At the edge the client's address is the peer's, and what it claims of certificates is not believed. */
function httpContent(
  { settings, port }: GatewayListenerParts,
  { server }: GatewayServer,
  { name, rds }: { readonly name: string; readonly rds: string },
): FilterChainInput["content"] {
  const extensions = extensionsAt(settings.extensions, port.port);
  const http: HttpManagerInput = {
    ...settings.http,
    statPrefix: `outbound_${name};`,
    grpcWeb: server.port?.protocol.toUpperCase() === "GRPC-WEB",
    routes: { rds },
    useRemoteAddress: true,
    trustedHops: settings.trustedHops,
    clientCert: settings.clientCert,
    server: settings.server,
    http2: false,
    http1: settings.acceptHttp10 ? { acceptHttp10: true } : {},
    ...(settings.internalRanges !== undefined && { internalRanges: settings.internalRanges }),
    ...(extensions.http !== undefined && { extensions: extensions.http }),
  };
  return { http, ...(extensions.network !== undefined && { network: extensions.network }) };
}
