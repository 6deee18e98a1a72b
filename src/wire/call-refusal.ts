import type { GrpcStatus } from "./grpc-status.ts";

/** Thrown by a unary method to turn a call away with a status of its choice; the message is sent to the caller. */
export class CallRefusal extends Error {
  override readonly name = "CallRefusal";
  readonly status: GrpcStatus;

  constructor(status: GrpcStatus, reason: string) {
    super(reason);
    this.status = status;
  }
}
