import type { DeltaRequestParts } from "../../wire/delta-frames.ts";
import type { DiscoveryStream, DiscoveryStreamEvents } from "../../wire/discovery-stream.ts";
import { DeltaRelay, type OwnType, type RelayDeps } from "./delta-relay.ts";
import { passThrough } from "./pass-through.ts";

/** Serves configuration to the Envoy beside us. */
export interface XdsProxy {
  accept(stream: DiscoveryStream): DiscoveryStreamEvents;
  /** Says again, on every stream, what the agent has to say (its health, for example). */
  announce(): void;
  /** Says something on every stream that there is now (that it wants more of a type, for example). */
  say(request: Omit<DeltaRequestParts, "node">): void;
}

/** One stream to the control plane for each of Envoy's; delta ones outlive a control plane that goes away. */
export function createXdsProxy(deps: Omit<RelayDeps, "connected" | "own">): XdsProxy {
  const relays = new Set<DeltaRelay>();
  const own = new Map<string, OwnType>();
  let connectedTo: string | undefined;
  return {
    accept(stream) {
      if (stream.variant === "sotw") return passThrough(stream, deps.dialer, deps.log);
      for (const subscription of deps.uplink.subscriptions)
        if (!own.has(subscription.typeUrl)) own.set(subscription.typeUrl, { subscription, held: new Map() });
      const relay = new DeltaRelay(stream, {
        ...deps,
        own,
        connected(address) {
          if (address !== undefined && address !== connectedTo) deps.log.info({ address }, "configuration comes from the control plane");
          connectedTo = address;
        },
      });
      relays.add(relay);
      return {
        message: (bytes) => relay.message(bytes),
        ended() {
          relays.delete(relay);
          relay.ended();
        },
      };
    },
    announce() {
      for (const relay of relays) relay.announce();
    },
    say(request) {
      for (const relay of relays) relay.say(request);
    },
  };
}
