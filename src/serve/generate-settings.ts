import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { GenerateSettings } from "../generate/context.ts";

/** Version of this build, and of the Istio whose API and behaviour it follows. */
export const VERSION = "0.1.0";
/** Version of Istio whose API and behaviour are served. */
export const ISTIO_API_VERSION = "1.32.0";

/** Istio's words and the older ones for the same. */
const KEY_FETCHERS = { false: "istiod", istiod: "istiod", true: "hybrid", hybrid: "hybrid", envoy: "envoy" } as const;

/** The settings that reach generators: a few values, read once. */
export function generateSettings({ settings }: LoadedMesh): GenerateSettings {
  return {
    clusterDomain: settings.clusterDomain,
    clusterId: settings.clusterId,
    sniffOutbound: settings.sniffOutbound,
    sniffInbound: settings.sniffInbound,
    edsForHeadless: settings.edsForHeadless,
    defaultRequestTimeoutMs: settings.defaultRequestTimeoutMs,
    http10: settings.http10,
    mongoFilter: settings.mongoFilter,
    redisFilter: settings.redisFilter,
    sessions: {
      enabled: settings.persistentSessions,
      cookieLabel: settings.sessionLabel,
      headerLabel: settings.sessionHeaderLabel,
      drainingLabel: settings.drainingLabel,
    },
    quicListeners: settings.quicListeners,
    dualStack: settings.dualStack,
    tlsOnSidecarIngress: settings.tlsOnSidecarIngress,
    traceSampling: settings.traceSampling,
    severalAuthorizers: settings.severalAuthorizers,
    keyFetcher: KEY_FETCHERS[settings.remoteJwks],
    autoAddressRanges: settings.autoAllocateAddresses ? [settings.autoAllocateIpv4, settings.autoAllocateIpv6] : [],
  };
}
