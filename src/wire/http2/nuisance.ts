import type { Clock } from "../../base/clock.ts";
import { HTTP2_ERROR, Http2Fault } from "./frame.ts";

/** As many at once as any client has reason for, such as resets of all its streams again and again while it starts. */
const BURST = 1_000;
/** What is forgiven each second. */
const EACH_SECOND = 100;

/**
 * Counts frames that make work and bring nothing: resets, pings, settings, priorities, empty content, windows opened by a few bytes. Clients that behave send
 * some; a flood of them is how servers were brought down (CVE-2019-9511 to 9518, CVE-2023-44487).
 */
export class Nuisance {
  readonly #clock: Pick<Clock, "monotonic">;
  #left = BURST;
  #since: number;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#since = clock.monotonic();
  }

  /** Throws `Http2Fault` for the connection where it is too much. */
  count(): void {
    this.#left -= 1;
    if (this.#left >= 0) return;
    const now = this.#clock.monotonic();
    this.#left = Math.min(BURST, Math.floor(((now - this.#since) * EACH_SECOND) / 1_000)) - 1;
    this.#since = now;
    if (this.#left < 0) throw new Http2Fault(HTTP2_ERROR.ENHANCE_YOUR_CALM, "a flood of frames that bring nothing");
  }
}
