import type { DeltaRequestParts } from "../../wire/delta-frames.ts";
import type { DiscoveryStream, DiscoveryStreamEvents } from "../../wire/discovery-stream.ts";
import type { AgentMetric } from "../status/agent-metrics.ts";
import { DeltaRelay, type OwnType, type RelayDeps } from "./delta-relay.ts";
import { passThrough } from "./pass-through.ts";
import { createXdsCounts, xdsMetrics } from "./xds-counts.ts";

/** Serves configuration to the Envoy beside us. */
export interface XdsProxy {
  accept(stream: DiscoveryStream): DiscoveryStreamEvents;
  /** Keeps a stream for what the agent wants and says itself, where no Envoy opens one. */
  standAlone(node: Uint8Array, signal: AbortSignal): void;
  /** Says again, on every stream, what the agent has to say (its health, for example). */
  announce(): void;
  /** Says something on every stream that there is now (that it wants more of a type, for example). */
  say(request: Omit<DeltaRequestParts, "node">): void;
  /** What became of its streams. */
  readonly metrics: readonly AgentMetric[];
}

/** One stream to the control plane for each of Envoy's; delta ones outlive a control plane that goes away. */
export function createXdsProxy(deps: Omit<RelayDeps, "connected" | "own" | "counts">): XdsProxy {
  const relays = new Set<DeltaRelay>();
  const own = new Map<string, OwnType>();
  const counts = createXdsCounts();
  let connectedTo: string | undefined;
  const connected = (address: string | undefined): void => {
    if (address !== undefined && address !== connectedTo) deps.log.info({ address }, "configuration comes from the control plane");
    connectedTo = address;
  };
  const open = (stream: Pick<DiscoveryStream, "send">): DeltaRelay => {
    for (const subscription of deps.uplink.subscriptions)
      if (!own.has(subscription.typeUrl)) own.set(subscription.typeUrl, { subscription, held: new Map() });
    const relay = new DeltaRelay(stream, { ...deps, own, counts, connected });
    relays.add(relay);
    return relay;
  };
  const close = (relay: DeltaRelay): void => {
    relays.delete(relay);
    relay.ended();
  };
  return {
    metrics: xdsMetrics(counts),
    accept(stream) {
      if (stream.variant === "sotw") return passThrough(stream, { ...deps, counts });
      const relay = open(stream);
      return { message: (bytes) => relay.message(bytes), ended: () => close(relay) };
    },
    standAlone(node, signal) {
      const relay = open({ send() {} });
      signal.addEventListener("abort", () => close(relay), { once: true });
      relay.standAlone(node);
    },
    announce() {
      for (const relay of relays) relay.announce();
    },
    say(request) {
      for (const relay of relays) relay.say(request);
    },
  };
}
