import type { DnsCacheInput } from "../../../envoy/dns-cache.ts";
import type { HttpManagerInput } from "../../../envoy/filters/http-connection-manager.ts";
import { type FilterChainInput, takesAll } from "../../../envoy/listener/filter-chain.ts";
import type { ListenerInput } from "../../../envoy/listener/listener.ts";
import type { Scope } from "../../context.ts";
import { anyNameDnsCache, serviceDnsCache } from "../../dynamic-dns.ts";
import { extensionsAt } from "../../extensions/chain-extensions.ts";
import { withoutOverlaps } from "../overlaps.ts";
import { type ChainSettings, http1Options } from "../settings/chain-settings.ts";
import type { Slot } from "./slots.ts";
import { HANDSHAKE_TIMEOUT_MS } from "./tcp-chains.ts";

export interface OutboundListenerParts {
  readonly name: string;
  /** At least one; those that win conflicts first. */
  readonly slots: readonly Slot[];
  readonly settings: ChainSettings;
  readonly scope: Pick<Scope, "outboundPolicy" | "egressProxy">;
  readonly lookupFamily: DnsCacheInput["family"];
  readonly sniff: boolean;
  readonly tcpChains: (slot: Slot) => readonly FilterChainInput[];
}

/**
 * Puts the slots of one listener together as Istio does: HTTP services share one connection manager, whose routes tell them apart; TCP
 * services are told apart by address range or SNI, and of those that cannot be the first wins; HTTP and TCP on one captured port are told
 * apart by looking at the first bytes.
 */
export function outboundListener(parts: OutboundListenerParts): ListenerInput | undefined {
  const slots = withFirst(parts.slots, parts.sniff);
  const [first] = slots;
  if (first === undefined) return undefined;
  const http = slots.find(({ kind }) => kind !== "tcp");
  const sniffed = http !== undefined && looksAtFirstBytes(first, slots);
  const all = withoutOverlaps(
    slots.flatMap((slot) => [
      ...(slot === http ? [httpChain(parts, http, sniffed)] : []),
      ...(slot.kind === "http" ? [] : parts.tcpChains(slot)),
    ]),
  );
  // Envoy never goes back from a chain that matched in part to one that asks for nothing: beside others, what takes all must be the default.
  const fallback = all.length > 1 ? all.find(({ match }) => takesAll(match)) : undefined;
  const chains = all.filter((chain) => chain !== fallback);
  const bySni = chains.some(({ match }) => match.serverNames !== undefined);
  const defaultChain =
    fallback ??
    (chains.some(({ match }) => takesAll(match)) ? undefined : unknownTraffic(parts.scope, parts.settings, "PassthroughFilterChain"));
  return {
    name: parts.name,
    bind: first.bind,
    direction: "outbound",
    bindToPort: first.bindToPort,
    filters: { ...(bySni && { tls: { on: "all" } }), ...(sniffed && { http: { on: "all" } }) },
    // Without HTTP inspection there is nothing to wait for: a TLS greeting comes at once, or the client is no TLS client.
    inspectionTimeoutMs: sniffed ? parts.settings.inspectionTimeoutMs : 0,
    chains,
    ...(defaultChain !== undefined && { defaultChain }),
    accessLogs: [],
  };
}

/**
 * Whether HTTP is told from other bytes by looking at them. On captured ports anything may come, except from clients of an explicit proxy; a port
 * that is opened for a service carries what that service declares.
 */
function looksAtFirstBytes(first: Slot, slots: readonly Slot[]): boolean {
  if (!first.wildcard) return slots.some(({ kind }) => kind === "auto");
  return (!first.bindToPort && first.protocol !== "HTTP_PROXY") || slots.some(({ kind }) => kind !== "http");
}

/** Protocols whose server speaks first: looking at the client's first bytes would keep both waiting, so they share a port with nothing else. */
const SERVER_FIRST: ReadonlySet<string> = new Set(["MYSQL", "MONGO"]);

/** The slots that can share a port with the first one, which decides. Where sniffing is off, HTTP and TCP cannot. */
function withFirst(slots: readonly Slot[], sniff: boolean): readonly Slot[] {
  const [first] = slots;
  if (first === undefined) return slots;
  const alone = ({ protocol }: Slot): boolean => SERVER_FIRST.has(protocol);
  return slots.filter(
    (slot) => (sniff || slot.kind === first.kind) && (slot.protocol === first.protocol || !(alone(slot) || alone(first))),
  );
}

function httpChain(listener: OutboundListenerParts, slot: Slot, sniffed: boolean): FilterChainInput {
  const { name, settings } = listener;
  const dnsCaches = dnsCachesOf(listener);
  const parts = { listener: name, port: slot.port, rds: routeName(slot), grpcWeb: slot.protocol === "GRPC-WEB", dnsCaches };
  return {
    match: sniffed ? { transport: "raw_buffer", applicationProtocols: settings.plainHttp } : {},
    content: httpContent(settings, parts),
    handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
  };
}

/** What the names of services on the listener that are found by name are resolved with, and the names of all the rest where the mesh says so. */
function dnsCachesOf({ slots, scope, lookupFamily }: OutboundListenerParts): readonly DnsCacheInput[] {
  const hosts = new Set(slots.filter(({ kind, byName }) => kind !== "tcp" && byName === true).map(({ service }) => service.host));
  return [...[...hosts].map((host) => serviceDnsCache(host, lookupFamily)), ...anyNameCaches(scope, lookupFamily)];
}

/** What the names of hosts nobody declared are resolved with, where they are found by name. */
export const anyNameCaches = (scope: OutboundListenerParts["scope"], lookupFamily: DnsCacheInput["family"]): readonly DnsCacheInput[] =>
  scope.outboundPolicy === "ALLOW_ANY_DYNAMIC_DNS" ? [anyNameDnsCache(lookupFamily)] : [];

/** One route table per port; a sniffed service on an address of its own has its own, named after it; a Unix socket is its own port. */
function routeName(slot: Slot): string {
  if ("unixPath" in slot.bind) return `unix://${slot.bind.unixPath}`;
  return slot.kind === "auto" && !slot.wildcard ? `${slot.service.host}:${slot.port}` : String(slot.port);
}

interface ManagerParts {
  readonly listener: string;
  readonly port: number;
  readonly rds: string;
  readonly grpcWeb: boolean;
  readonly dnsCaches: readonly DnsCacheInput[];
  readonly http1?: HttpManagerInput["http1"];
}

/** A chain that speaks HTTP on the client's side: addresses and certificates are the server's business, so nothing is said of them. */
export function httpContent(settings: ChainSettings, parts: ManagerParts): FilterChainInput["content"] {
  const { listener, port, rds, grpcWeb, dnsCaches, http1 } = parts;
  const extensions = extensionsAt(settings.extensions, port);
  const http: HttpManagerInput = {
    ...settings.http,
    statPrefix: `outbound_${listener};`,
    grpcWeb,
    routes: { rds },
    useRemoteAddress: false,
    trustedHops: 0,
    clientCert: undefined,
    server: settings.server,
    http2: false,
    ...http1Options(settings, http1),
    ...(extensions.http !== undefined && { extensions: extensions.http }),
    ...(dnsCaches.length > 0 && { dnsCaches }),
  };
  return { http, ...(extensions.network !== undefined && { network: extensions.network }) };
}

/** What no service claims: let through, refused, or handed to the egress proxy a Sidecar names. */
export function unknownTraffic(scope: OutboundListenerParts["scope"], settings: ChainSettings, name: string): FilterChainInput {
  const { egressProxy, outboundPolicy } = scope;
  const cluster =
    outboundPolicy === "REGISTRY_ONLY"
      ? "BlackHoleCluster"
      : egressProxy === undefined
        ? "PassthroughCluster"
        : `outbound|${egressProxy.port}|${egressProxy.subset}|${egressProxy.host}`;
  const { accessLogs, idleTimeoutMs } = settings;
  return {
    name,
    match: {},
    content: {
      tcp: {
        statPrefix: cluster,
        destinations: [{ cluster, weight: 0 }],
        accessLogs,
        ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
      },
    },
  };
}
