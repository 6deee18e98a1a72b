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

/** In the order in which they are woken. */
const LANES: readonly Lane[] = ["urgent", "known", "new"];

/** How much of the budget each lane may fill: urgent types never wait behind large responses, and proxies never behind a crowd of strangers. */
const SHARE = { urgent: 1, known: 0.75, new: 0.5 } as const satisfies Record<Lane, number>;

/** Of the total, what may be stuck before it is held against anybody: a large push to readers that are merely slow has always somebody waiting. */
const STUCK_SHARE = 0.25;
/** How many times as long as a slow response may take a waiter is held to be there. */
const ABSENT_TURNS = 10;

/** What a waiter was refused, since when, and whether it was told that there is room. */
interface Refused {
  readonly bytes: number;
  readonly since: number;
  woken: boolean;
}

/**
 * Bytes handed to the network but not yet taken by it, over all streams. Streams take turns within it, so that slow readers cost a fixed
 * amount of memory, whatever their number. Small responses may pass a large one that does not fit, but for a while only.
 */
export class SendBudget {
  readonly #limits: BudgetLimits;
  readonly #waiting: Record<Lane, Map<Waiter, Refused>> = { urgent: new Map(), known: new Map(), new: new Map() };
  readonly #moving = new Set<Ticket>();
  #movingBytes = 0;
  #total = 0;
  #scale = 1;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  get used(): number {
    return this.#total;
  }

  /** Somebody waits, and much is taken up by what does not move: those who hold up the queue may be let go of. */
  get contended(): boolean {
    const stuck = this.#total - this.#movingBytes;
    return stuck >= this.#limits.totalBytes * this.#scale * STUCK_SHARE && Object.values(this.#waiting).some((queue) => queue.size > 0);
  }

  /** Streams that have yet to show that they read, and wait for room. */
  get newcomers(): number {
    return this.#waiting.new.size;
  }

  /** The share of the limits that may be used: less of them where memory is short. */
  set scale(share: number) {
    this.#scale = share;
    this.#wake();
  }

  /** Takes the bytes, or notes the waiter. A response larger than the window goes when nothing else moves. */
  take(want: Ticket, lane: Lane, waiter: Waiter): boolean {
    if (!this.admits(want, lane, waiter)) return false;
    this.#waiting[lane].delete(waiter);
    this.#moving.add(want);
    this.#movingBytes += want.bytes;
    this.#total += want.bytes;
    return true;
  }

  /** Whether there is room for so many bytes now; if not, the waiter is noted. */
  admits({ bytes, since }: Ticket, lane: Lane, waiter: Waiter): boolean {
    const queue = this.#waiting[lane];
    if (this.#fits(bytes, lane, 0) && this.#mayPass(queue, waiter, since)) return true;
    queue.set(waiter, { bytes, since: queue.get(waiter)?.since ?? since, woken: false });
    return false;
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
    this.#recall(now);
    this.#wake();
  }

  /** Whether somebody was told to wait, and not yet that there is room. */
  isWaiting(waiter: Waiter): boolean {
    return LANES.some((lane) => this.#waiting[lane].get(waiter)?.woken === false);
  }

  /** The waiter is gone, or has nothing to send any more: the room that it was promised is the next one's. */
  leave(waiter: Waiter): void {
    let left = false;
    for (const lane of LANES) left = this.#waiting[lane].delete(waiter) || left;
    if (left) this.#wake();
  }

  #fits(bytes: number, lane: Lane, promised: number): boolean {
    const share = SHARE[lane] * this.#scale;
    const [moving, total] = [this.#movingBytes + promised, this.#total + promised];
    const fitsWindow = moving === 0 || moving + bytes <= this.#limits.windowBytes * share;
    return fitsWindow && (total === 0 || total + bytes <= this.#limits.totalBytes * share);
  }

  /** Nobody goes before one who has waited long in the same lane. */
  #mayPass(queue: ReadonlyMap<Waiter, Refused>, waiter: Waiter, now: number): boolean {
    const [head] = queue;
    return head === undefined || head[0] === waiter || now - head[1].since < this.#limits.slowMs;
  }

  /** One who was told that there is room and has not come for long may want nothing any more: it lines up anew, if it does. */
  #recall(now: number): void {
    for (const queue of Object.values(this.#waiting)) {
      for (const [waiter, { since, woken }] of queue) {
        if (!woken || now - since < this.#limits.slowMs * ABSENT_TURNS) break;
        queue.delete(waiter);
        waiter.wake();
      }
    }
  }

  /** Wakes as many as now find room, lane by lane, in the order they came. */
  #wake(): void {
    let promised = 0;
    for (const lane of LANES) {
      for (const [waiter, refused] of this.#waiting[lane]) {
        if (!this.#fits(refused.bytes, lane, promised)) break;
        promised += refused.bytes;
        if (refused.woken) continue;
        refused.woken = true;
        waiter.wake();
      }
    }
  }
}
