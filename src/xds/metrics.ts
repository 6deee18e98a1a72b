/** What the server counts. `bin/` gives these Istio's metric names. */
export interface XdsMetrics {
  /** Streams open now (pilot_xds). */
  streams(open: number): void;
  /** A response was handed to the network (pilot_xds_pushes, pilot_xds_config_size_bytes, pilot_xds_push_time; greetings by themselves). */
  sent(event: SentEvent): void;
  /** The network took all of it (pilot_xds_send_time). */
  flushed(typeUrl: string, ms: number): void;
  acknowledged(typeUrl: string, ms: number): void;
  /** pilot_total_xds_rejects, pilot_xds_{cds,eds,lds,rds}_reject. */
  rejected(typeUrl: string, node: string): void;
  /** A stream of a proxy ended: what is counted for this proxy alone need not be kept. */
  left(node: string): void;
  /** pilot_xds_expired_nonce. */
  expiredNonce(typeUrl: string): void;
  /** A stream was cut because it did not read (pilot_xds_write_timeout). */
  writeTimeout(): void;
  /** A proxy that came back after a restart has what it would be offered of a type, as its receipt says. */
  confirmed(): void;
  /** A stream was not let in, because too many wait. */
  turnedAway(): void;
  /** A stream that did not read was cut because memory is short. */
  shed(): void;
  /** A stretch of work without a pause. */
  slice(ms: number): void;
  /** A push began (pilot_push_triggers). */
  triggered(cause: PushCause): void;
  /** From a push to the last acknowledgement of one proxy (pilot_proxy_convergence_time). */
  converged(ms: number): void;
  /** A fault of ours (pilot_total_xds_internal_errors). */
  internalError(): void;
}

/** What kind of change a push is for, in Istio's words. A closed list, since pushes are counted by it: names of objects are without number, and not for everybody. */
export type PushCause = "config" | "service" | "endpoint" | "secret" | "namespace" | "networks" | "global";

export interface SentEvent {
  readonly typeUrl: string;
  readonly bytes: number;
  readonly changed: number;
  readonly removed: number;
  /** It has no content: a word to a proxy that came back and has needed nothing since. */
  readonly isGreeting: boolean;
  /** Time to work out what to send. */
  readonly ms: number;
}

const nothing = (): void => {};

export const noMetrics: XdsMetrics = {
  streams: nothing,
  sent: nothing,
  flushed: nothing,
  acknowledged: nothing,
  rejected: nothing,
  left: nothing,
  expiredNonce: nothing,
  writeTimeout: nothing,
  confirmed: nothing,
  turnedAway: nothing,
  shed: nothing,
  slice: nothing,
  triggered: nothing,
  converged: nothing,
  internalError: nothing,
};
