/** Someone who wants to send and was told to wait. */
export interface Waiter {
  /** There may be room now: try again. */
  wake(): void;
}

/**
 * Bytes handed to the network but not yet taken by it, over all streams. Streams take turns within it, so that slow readers cost a fixed
 * amount of memory, whatever their number. A quarter is kept for urgent types, which therefore never wait behind large responses.
 */
export class SendBudget {
  readonly #limit: number;
  readonly #waiting = { urgent: new Map<Waiter, number>(), other: new Map<Waiter, number>() };
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** Somebody waits: those who hold up the queue may be let go of. */
  get contended(): boolean {
    return this.#waiting.urgent.size + this.#waiting.other.size > 0;
  }

  /** Takes the bytes, or notes the waiter. A response larger than the whole budget goes when nothing else is on its way. */
  take(bytes: number, urgent: boolean, waiter: Waiter): boolean {
    const queue = urgent ? this.#waiting.urgent : this.#waiting.other;
    const limit = urgent ? this.#limit : (this.#limit * 3) / 4;
    if (this.#used > 0 && this.#used + bytes > limit) {
      queue.set(waiter, bytes);
      return false;
    }
    queue.delete(waiter);
    this.#used += bytes;
    return true;
  }

  /** Gives bytes back and wakes as many as now find room, urgent ones first, in the order they came. */
  give(bytes: number): void {
    this.#used -= bytes;
    let room = this.#limit - this.#used;
    for (const queue of [this.#waiting.urgent, this.#waiting.other]) {
      for (const [waiter, wanted] of queue) {
        if (room <= 0) return;
        queue.delete(waiter);
        room -= wanted;
        waiter.wake();
      }
    }
  }

  /** The waiter is gone. */
  leave(waiter: Waiter): void {
    this.#waiting.urgent.delete(waiter);
    this.#waiting.other.delete(waiter);
  }
}
