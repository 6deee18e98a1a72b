/** How a client behaves that is shown the door before it is known who it is. A closed list: it becomes a label of a metric. */
export type Misbehaviour =
  /** What came is no TLS, or none that we speak. */
  | "tls handshake"
  /** It connected and did not go on. */
  | "handshake timeout"
  /** It connected and never called. */
  | "silent"
  /** Bad frames, or a flood of them: resets, headers without end. */
  | "http2"
  | "too many streams"
  /** A message that is too large, or not framed as one. */
  | "message";
