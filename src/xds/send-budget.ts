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

/**
 * Bytes handed to the network but not yet taken by it, over all streams. Streams take turns within it, so that slow readers cost a fixed
 * amount of memory, whatever their number. A quarter is kept for urgent types, which therefore never wait behind large responses.
 */
export class SendBudget {
  readonly #limits: BudgetLimits;
  readonly #waiting = { urgent: new Map<Waiter, number>(), other: new Map<Waiter, number>() };
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
    return this.#waiting.urgent.size + this.#waiting.other.size > 0;
  }

  /** Takes the bytes, or notes the waiter. A response larger than the window goes when nothing else moves. */
  take(want: Ticket, urgent: boolean, waiter: Waiter): boolean {
    const queue = urgent ? this.#waiting.urgent : this.#waiting.other;
    const share = urgent ? 1 : 0.75;
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
    this.#waiting.urgent.delete(waiter);
    this.#waiting.other.delete(waiter);
  }

  /** Wakes as many as now find room, urgent ones first, in the order they came. */
  #wake(): void {
    let room = Math.min(this.#limits.windowBytes - this.#movingBytes, this.#limits.totalBytes - this.#total);
    for (const queue of [this.#waiting.urgent, this.#waiting.other]) {
      for (const [waiter, wanted] of queue) {
        if (room <= 0) return;
        queue.delete(waiter);
        room -= wanted;
        waiter.wake();
      }
    }
  }
}
