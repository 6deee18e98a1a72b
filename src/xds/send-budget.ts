/** Someone who wants to send and was told to wait. */
export interface Waiter {
  /** There may be room now: try again. */
  wake(): void;
}

/** Bytes on their way. */
export interface Ticket {
  readonly bytes: number;
  readonly since: number;
}

export interface BudgetLimits {
  /** Bytes not yet taken by the network, over all streams. */
  readonly totalBytes: number;
  /** Of those, bytes of streams that read: a push goes through this window, so that memory does not grow with the number of proxies. */
  readonly windowBytes: number;
  /** What is not taken for this long leaves the window and counts in the total only: those who read do not wait for those who do not. */
  readonly slowMs: number;
}

/** Urgent types, streams that have answered before, and streams that have yet to show that they read. */
export type Lane = "urgent" | "known" | "new";

/** How much of the budget each lane may fill: urgent types never wait behind large responses, and proxies never behind a crowd of strangers. */
const SHARE = { urgent: 1, known: 0.75, new: 0.5 } as const satisfies Record<Lane, number>;

/**
 * Bytes handed to the network but not yet taken by it, over all streams. Streams take turns within it, so that slow readers cost a fixed
 * amount of memory, whatever their number.
 */
export class SendBudget {
  readonly #limits: BudgetLimits;
  readonly #waiting: Record<Lane, Map<Waiter, number>> = { urgent: new Map(), known: new Map(), new: new Map() };
  readonly #moving = new Set<Ticket>();
  #movingBytes = 0;
  #total = 0;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  get used(): number {
    return this.#total;
  }

  /** Somebody waits: those who hold up the queue may be let go of. */
  get contended(): boolean {
    return Object.values(this.#waiting).some((queue) => queue.size > 0);
  }

  /** Takes the bytes, or notes the waiter. A response larger than the window goes when nothing else moves. */
  take(want: Ticket, lane: Lane, waiter: Waiter): boolean {
    const queue = this.#waiting[lane];
    const share = SHARE[lane];
    const windowFull = this.#movingBytes > 0 && this.#movingBytes + want.bytes > this.#limits.windowBytes * share;
    const totalFull = this.#total > 0 && this.#total + want.bytes > this.#limits.totalBytes * share;
    if (windowFull || totalFull) {
      queue.set(waiter, want.bytes);
      return false;
    }
    queue.delete(waiter);
    this.#moving.add(want);
    this.#movingBytes += want.bytes;
    this.#total += want.bytes;
    return true;
  }

  /** The network took it, or the stream is gone. */
  give(ticket: Ticket): void {
    this.#total -= ticket.bytes;
    if (this.#moving.delete(ticket)) this.#movingBytes -= ticket.bytes;
    this.#wake();
  }

  /** Moves what does not move out of the window. */
  demote(now: number): void {
    for (const ticket of this.#moving) {
      if (now - ticket.since < this.#limits.slowMs) break;
      this.#moving.delete(ticket);
      this.#movingBytes -= ticket.bytes;
    }
    this.#wake();
  }

  /** The waiter is gone. */
  leave(waiter: Waiter): void {
    for (const queue of Object.values(this.#waiting)) queue.delete(waiter);
  }

  /** Wakes as many as now find room, lane by lane, in the order they came. */
  #wake(): void {
    const { windowBytes, totalBytes } = this.#limits;
    let promised = 0;
    for (const [lane, queue] of Object.entries(this.#waiting)) {
      const share = SHARE[lane as Lane];
      for (const [waiter, wanted] of queue) {
        const room = Math.min(windowBytes * share - this.#movingBytes, totalBytes * share - this.#total) - promised;
        if (room <= 0) break;
        queue.delete(waiter);
        promised += wanted;
        waiter.wake();
      }
    }
  }
}
