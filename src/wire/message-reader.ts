import { GRPC_STATUS, type GrpcStatus } from "./grpc-status.ts";
import { Pieces } from "./pieces.ts";

/** Why bytes on a stream are not taken. */
export interface ReadFault {
  readonly status: GrpcStatus;
  readonly reason: string;
}

/** Every gRPC message is preceded by one byte that says whether it is compressed, and four with its length. */
export const MESSAGE_PREFIX_BYTES = 5;

/** Cuts what comes over a stream into messages. Holds no more than one message of the size allowed, and copies one only if it came in pieces. */
export class MessageReader {
  readonly #maxBytes: number;
  readonly #pieces = new Pieces();
  /** Bytes needed before there is something to do: a prefix, or a prefix and its message. */
  #wanted = MESSAGE_PREFIX_BYTES;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Takes the next bytes and passes on each message that is complete. After a fault the rest of the stream has no meaning. */
  take(bytes: Buffer, message: (bytes: Buffer) => void): ReadFault | undefined {
    this.#pieces.push(bytes);
    while (this.#pieces.size >= this.#wanted) {
      const held = this.#pieces.takeAll();
      const length = held.readUInt32BE(1);
      if (held[0] !== 0) return { status: GRPC_STATUS.UNIMPLEMENTED, reason: "compressed messages are not taken" };
      if (length > this.#maxBytes)
        return {
          status: GRPC_STATUS.RESOURCE_EXHAUSTED,
          reason: `a message of ${length} bytes is larger than the ${this.#maxBytes} taken`,
        };
      const end = MESSAGE_PREFIX_BYTES + length;
      if (held.length < end) {
        this.#pieces.push(held);
        this.#wanted = end;
        return undefined;
      }
      this.#pieces.push(held.subarray(end));
      this.#wanted = MESSAGE_PREFIX_BYTES;
      message(held.subarray(MESSAGE_PREFIX_BYTES, end));
    }
    return undefined;
  }
}
