/** Limits and timings of the discovery server. */
export interface XdsSettings {
  /** Bytes handed to the network and not yet taken by it, over all streams … */
  readonly unsentBytes: number;
  /** … and of those, bytes of streams that read. Measured: 16 MB is as fast as 64, and a push to 200 proxies takes 100 MB less. */
  readonly windowBytes: number;
  /** How long additions wait for the types they refer to. */
  readonly orderTimeoutMs: number;
  /** How long removals wait for the types that may refer to them. */
  readonly removalTimeoutMs: number;
  /** A connection that has not taken a byte for this long is cut when others wait and much of the budget is stuck. */
  readonly stallMs: number;
  /** A response that is not taken whole for this long ends its connection in any case. */
  readonly sendTimeoutMs: number;
  /** A stream that does not say who it is for this long is cut. */
  readonly firstRequestMs: number;
  /** A client that came back and needed nothing for this long is sent a response without content: see `Channels.greet`. */
  readonly greetAfterMs: number;
  /** A push is summed up after this long, although some proxy has not answered. */
  readonly roundTimeoutMs: number;
  readonly maxNodeBytes: number;
  /** Names one stream may subscribe to, per type. */
  readonly maxNames: number;
  /** Streams that may wait for a first response; while there are more, those that come are not read. */
  readonly maxNewcomers: number;
  /** Streams that may wait to be let in. */
  readonly maxWaiting: number;
  /** Streams let in within a second; 0: as many as can be served. */
  readonly admittedPerSecond: number;
  /** Says to clients who serves them. */
  readonly controlPlane: string;
}

export const DEFAULT_XDS_SETTINGS: XdsSettings = {
  unsentBytes: 64 * 1024 * 1024,
  windowBytes: 16 * 1024 * 1024,
  orderTimeoutMs: 2_000,
  removalTimeoutMs: 5_000,
  stallMs: 3_000,
  sendTimeoutMs: 300_000,
  firstRequestMs: 15_000,
  greetAfterMs: 30_000,
  roundTimeoutMs: 30_000,
  maxNodeBytes: 256 * 1024,
  maxNames: 100_000,
  maxNewcomers: 32,
  maxWaiting: 20_000,
  admittedPerSecond: 0,
  controlPlane: "istiod",
};
