import type { DeltaRequestParts, DeltaResponse } from "../../wire/delta-frames.ts";

/** A type that the agent itself wants, on the stream that also carries what Envoy wants; responses of the type do not reach Envoy. */
export interface AgentSubscription {
  readonly typeUrl: string;
  /** Empty: all. */
  readonly names: readonly string[];
  /** Names come as they are needed: nothing is asked for while there are none. */
  readonly onDemand?: true;
  /** A throw rejects the response. */
  taken(response: DeltaResponse): void;
}

/** Something the agent says on each stream as soon as it is open, and again when `uplink.announce` is called (health, for example). */
export type Announcement = () => Omit<DeltaRequestParts, "node"> | undefined;

/**
 * Changes resources on their way to Envoy (Wasm modules that were fetched, for example). Gives the bytes of the response to send instead; `later`
 * sends serialized resources of the type that came to be after that.
 */
export type ResponseFilter = (response: DeltaResponse, bytes: Uint8Array, later: SendLater) => Promise<Uint8Array>;

/** Sends Envoy resources of which the control plane knows nothing new. */
export type SendLater = (resources: readonly Uint8Array[]) => void;

/** What parts of the agent add to the stream towards the control plane. Filled before the first stream is opened. */
export interface Uplink {
  readonly subscriptions: readonly AgentSubscription[];
  readonly announcements: readonly Announcement[];
  readonly filters: ReadonlyMap<string, ResponseFilter>;
}
