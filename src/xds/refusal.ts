import type { GrpcStatus } from "../wire/grpc-status.ts";

/** Thrown by `viewOf` to turn a caller away: the stream ends with this status and reason. */
export class StreamRefusal extends Error {
  override readonly name = "StreamRefusal";
  readonly status: GrpcStatus;

  constructor(status: GrpcStatus, reason: string) {
    super(reason);
    this.status = status;
  }
}
