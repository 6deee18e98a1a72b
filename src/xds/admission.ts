import type { Clock } from "../base/clock.ts";
import type { GrpcStatus } from "../wire/grpc-status.ts";

/** Somebody who wants to be served and has not been read yet. */
export interface Entrant {
  /** May come in now. */
  admit(): void;
  /** Will not be let in. */
  turnAway(status: GrpcStatus, reason: string): void;
}

export interface AdmissionLimits {
  /** Newcomers that may wait for a first response; as long as there are more, others are not let in. */
  readonly mostNewcomers: number;
  /** Streams that may wait to be let in. */
  readonly mostWaiting: number;
  /** Streams let in within a second (PILOT_MAX_REQUESTS_PER_SECOND); 0: as many as can be served. */
  readonly perSecond: number;
}

export interface AdmissionOptions {
  readonly clock: Clock;
  readonly limits: AdmissionLimits;
  /** Newcomers that wait for a first response. */
  newcomers(): number;
}

/** How freely streams are let in: as fast as they can be served, one a second, or not at all. */
export type Door = "open" | "ajar" | "shut";

/** One who was let in has not asked yet, but will in a moment. After this long it does not count: nobody waits for those who keep silent. */
const ARRIVING_MS = 100;
const AJAR_MS = 1_000;

/**
 * Lets streams in as fast as they can be served: when thousands come at once, most wait, unread, in the order they came. Those inside then share
 * the processor with few newcomers at a time, and what newcomers have to say does not pile up in memory. No rate has to be guessed for it.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #waiting = new Set<Entrant>();
  /** Let in, and not heard of yet: when. */
  readonly #arriving = new Map<Entrant, number>();
  #door: Door = "open";
  #nextAt = 0;
  #cancel: (() => void) | undefined;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get door(): Door {
    return this.#door;
  }

  set door(door: Door) {
    this.#door = door;
    this.advance();
  }

  /** Lets one in at once, or when it is its turn. False: too many wait already, or the door is shut. */
  enter(entrant: Entrant): boolean {
    if (this.#door === "shut" || this.#waiting.size >= this.#options.limits.mostWaiting) return false;
    this.#waiting.add(entrant);
    this.advance();
    return true;
  }

  /** One has said what it wants: from now on it is counted where it waits for it. */
  arrived(entrant: Entrant): void {
    this.#arriving.delete(entrant);
  }

  /** One went away. */
  leave(entrant: Entrant): void {
    this.#arriving.delete(entrant);
    this.#waiting.delete(entrant);
  }

  /** Lets in as many as there is room for. Called whenever somebody was served; costs next to nothing while nobody waits. */
  advance(): void {
    if (this.#waiting.size === 0) return;
    for (const entrant of this.#waiting) {
      if (!this.#hasRoom()) break;
      this.#waiting.delete(entrant);
      this.#admit(entrant);
    }
    if (this.#waiting.size > 0) this.#lookAgain();
  }

  /** Sends all away who wait. */
  stop(status: GrpcStatus, reason: string): void {
    this.#cancel?.();
    for (const entrant of [...this.#waiting]) entrant.turnAway(status, reason);
  }

  #hasRoom(): boolean {
    const { clock, limits, newcomers } = this.#options;
    const now = clock.monotonic();
    if (this.#door === "shut" || now < this.#nextAt) return false;
    for (const [entrant, since] of this.#arriving) {
      if (now - since < ARRIVING_MS) break;
      this.#arriving.delete(entrant);
    }
    return newcomers() + this.#arriving.size < limits.mostNewcomers;
  }

  #admit(entrant: Entrant): void {
    const { clock, limits } = this.#options;
    const now = clock.monotonic();
    const pace = Math.max(limits.perSecond > 0 ? 1_000 / limits.perSecond : 0, this.#door === "ajar" ? AJAR_MS : 0);
    if (pace > 0) this.#nextAt = now + pace;
    this.#arriving.set(entrant, now);
    entrant.admit();
  }

  /** Nobody may be served for a while, and still it becomes somebody's turn. */
  #lookAgain(): void {
    const { clock } = this.#options;
    const left = this.#nextAt - clock.monotonic();
    this.#cancel ??= clock.after(left > 0 ? Math.min(left, ARRIVING_MS) : ARRIVING_MS, () => {
      this.#cancel = undefined;
      this.advance();
    });
  }
}
