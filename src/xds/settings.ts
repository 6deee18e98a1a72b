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
  /** A connection that has not taken a byte for this long is cut when others wait for its share of the budget. */
  readonly stallMs: number;
  /** A response that is not taken whole for this long ends its connection in any case. */
  readonly sendTimeoutMs: number;
  /** A stream that does not say who it is for this long is cut. */
  readonly firstRequestMs: number;
  /** A push is summed up after this long, although some proxy has not answered. */
  readonly roundTimeoutMs: number;
  readonly maxNodeBytes: number;
  /** Names one stream may subscribe to, per type. */
  readonly maxNames: number;
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
  roundTimeoutMs: 30_000,
  maxNodeBytes: 256 * 1024,
  maxNames: 100_000,
  controlPlane: "istiod",
};
