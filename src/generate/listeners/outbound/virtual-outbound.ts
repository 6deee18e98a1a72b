import type { ListenerInput } from "../../../envoy/listener/listener.ts";
import type { Scope } from "../../context.ts";
import type { ChainSettings } from "../settings/chain-settings.ts";
import { type Families, listenerName, loopbacks, wildcards } from "../traits.ts";
import { httpContent, unknownTraffic } from "./outbound-listener.ts";

export interface VirtualOutboundParts {
  readonly families: Families;
  readonly transparent: boolean;
  readonly port: number;
  readonly scope: Pick<Scope, "outboundPolicy" | "egressProxy">;
  readonly settings: ChainSettings;
}

/**
 * The listener all outgoing connections are redirected to. It hands each to the listener of its original destination and keeps what no other
 * takes. A connection to its own port would come back for ever, so that ends here.
 */
export function virtualOutbound({ families, transparent, port, scope, settings }: VirtualOutboundParts): ListenerInput {
  return {
    name: "virtualOutbound",
    bind: { addresses: wildcards(families), port },
    direction: "outbound",
    bindToPort: true,
    useOriginalDestination: true,
    ...(transparent && { transparent }),
    filters: {},
    chains: [
      {
        name: "virtualOutbound-blackhole",
        match: { destinationPort: port },
        content: { tcp: { statPrefix: "BlackHoleCluster", destinations: [{ cluster: "BlackHoleCluster", weight: 0 }], accessLogs: [] } },
      },
      unknownTraffic(scope, settings, "virtualOutbound-catchall-tcp"),
    ],
    accessLogs: settings.listenerAccessLogs,
  };
}

/** A listener for clients that know their proxy (HTTP_PROXY): they send absolute URLs to a port of the loopback address. */
export function httpProxyListener(families: Families, port: number, settings: ChainSettings): ListenerInput {
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
        content: httpContent(settings, { listener: name, port, rds: "http_proxy", grpcWeb: false, http1: { allowAbsoluteUrl: true } }),
      },
    ],
    accessLogs: [],
  };
}
