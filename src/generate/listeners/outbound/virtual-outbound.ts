import type { DnsCacheInput } from "../../../envoy/dns-cache.ts";
import type { FilterChainInput } from "../../../envoy/listener/filter-chain.ts";
import type { ListenerInput } from "../../../envoy/listener/listener.ts";
import type { Scope } from "../../context.ts";
import type { ChainSettings } from "../settings/chain-settings.ts";
import { type Families, listenerName, loopbacks, wildcards } from "../traits.ts";
import { anyNameCaches, httpContent, unknownTraffic } from "./outbound-listener.ts";
import { HANDSHAKE_TIMEOUT_MS } from "./tcp-chains.ts";

export interface VirtualOutboundParts {
  readonly families: Families;
  readonly transparent: boolean;
  readonly port: number;
  readonly scope: Pick<Scope, "outboundPolicy" | "egressProxy">;
  readonly lookupFamily: DnsCacheInput["family"];
  readonly settings: ChainSettings;
}

/**
 * All outgoing connections are looked at here for HTTP before they are handed on, also those in which the server speaks first: they must not
 * wait for long. HTTP that comes later is passed on to the address the client chose.
 */
const INSPECTION_TIMEOUT_MS = 250;

/** Name of the route table for hosts nobody declared, where they are found by name; it has them alone. */
const ANY_NAME = "allow_any_dynamic_dns";

/**
 * The listener all outgoing connections are redirected to. It hands each to the listener of its original destination and keeps what no other
 * takes. A connection to its own port would come back for ever, so that ends here.
 */
export function virtualOutbound(parts: VirtualOutboundParts): ListenerInput {
  const { families, transparent, port, scope, lookupFamily, settings } = parts;
  const dnsCaches = anyNameCaches(scope, lookupFamily);
  return {
    name: "virtualOutbound",
    bind: { addresses: wildcards(families), port },
    direction: "outbound",
    bindToPort: true,
    useOriginalDestination: true,
    ...(transparent && { transparent }),
    filters: dnsCaches.length > 0 ? { http: { on: "all" } } : {},
    ...(dnsCaches.length > 0 && { inspectionTimeoutMs: INSPECTION_TIMEOUT_MS }),
    chains: [
      {
        name: "virtualOutbound-blackhole",
        match: { destinationPort: port },
        content: { tcp: { statPrefix: "BlackHoleCluster", destinations: [{ cluster: "BlackHoleCluster", weight: 0 }], accessLogs: [] } },
      },
      ...(dnsCaches.length > 0 ? [namedTraffic(settings, dnsCaches)] : []),
      unknownTraffic(scope, settings, "virtualOutbound-catchall-tcp"),
    ],
    accessLogs: settings.listenerAccessLogs,
  };
}

/** HTTP to hosts nobody declared, which says their names. The chain is called as Istio calls it, for EnvoyFilters name it. */
const namedTraffic = (settings: ChainSettings, dnsCaches: readonly DnsCacheInput[]): FilterChainInput => ({
  name: "virtualOutbound-catchall-tcp-http",
  match: { applicationProtocols: settings.plainHttp },
  content: httpContent(settings, { listener: "virtualOutbound", port: 0, rds: ANY_NAME, grpcWeb: false, dnsCaches }),
});

/** A listener for clients that know their proxy (HTTP_PROXY): they send absolute URLs to a port of the loopback address. */
export function httpProxyListener({
  families,
  port,
  scope,
  lookupFamily,
  settings,
}: Omit<VirtualOutboundParts, "transparent">): ListenerInput {
  const addresses = loopbacks(families);
  const name = listenerName(addresses[0] ?? "", port);
  return {
    name,
    bind: { addresses, port },
    direction: "outbound",
    bindToPort: true,
    filters: {},
    inspectionTimeoutMs: 0,
    chains: [
      {
        match: {},
        content: httpContent(settings, {
          listener: name,
          port,
          rds: "http_proxy",
          grpcWeb: false,
          dnsCaches: anyNameCaches(scope, lookupFamily),
          http1: { allowAbsoluteUrl: true },
        }),
        handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      },
    ],
    accessLogs: [],
  };
}
