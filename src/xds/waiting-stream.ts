import type { DiscoveryStream, DiscoveryStreamEvents } from "../wire/discovery-stream.ts";
import { GRPC_STATUS, type GrpcStatus } from "../wire/grpc-status.ts";
import type { Admission, Entrant } from "./admission.ts";

/** What a client said before its stream was paused; more than it can have sent by then is not taken. */
const MOST_EARLY_BYTES = 1024 * 1024;

/** A stream from its opening on: unread until it is let in, then the session that `open` gives. */
export class WaitingStream implements DiscoveryStreamEvents, Entrant {
  readonly #stream: DiscoveryStream;
  readonly #admission: Admission;
  readonly #open: (stream: DiscoveryStream) => DiscoveryStreamEvents;
  #session: DiscoveryStreamEvents | undefined;
  #early: Uint8Array[] = [];
  #earlyBytes = 0;
  #isOver = false;
  #hasSpoken = false;

  constructor(stream: DiscoveryStream, admission: Admission, open: (stream: DiscoveryStream) => DiscoveryStreamEvents) {
    this.#stream = stream;
    this.#admission = admission;
    this.#open = open;
  }

  /** Lines up. False: one who would have to wait behind too many, and was told so. */
  enter(): boolean {
    const enters = this.#admission.enter(this);
    const why =
      this.#admission.door === "shut" ? "memory is short here" : `${this.#admission.waiting} proxies wait to be served here already`;
    if (!enters) this.turnAway(GRPC_STATUS.RESOURCE_EXHAUSTED, `${why}; try again later, or run more control planes`);
    else if (this.#session === undefined) this.#stream.pause();
    return enters;
  }

  admit(): void {
    if (this.#isOver) return;
    const session = this.#open(this.#stream);
    this.#session = session;
    const early = this.#early;
    this.#early = [];
    for (const bytes of early) this.message(bytes);
    this.#stream.resume();
  }

  turnAway(status: GrpcStatus, reason: string): void {
    if (this.#isOver || this.#session !== undefined) return;
    this.ended();
    this.#stream.close(status, reason);
  }

  message(bytes: Uint8Array): void {
    if (this.#isOver) return;
    if (this.#session === undefined) {
      this.#earlyBytes += bytes.length;
      if (this.#earlyBytes <= MOST_EARLY_BYTES) this.#early.push(bytes);
      else this.turnAway(GRPC_STATUS.RESOURCE_EXHAUSTED, "too much was said before this stream could be served");
      return;
    }
    this.#session.message(bytes);
    if (this.#hasSpoken) return;
    this.#hasSpoken = true;
    this.#admission.arrived(this);
  }

  ended(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#early = [];
    this.#admission.leave(this);
    this.#session?.ended();
  }
}
