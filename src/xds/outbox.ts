import type { SendBudget, Ticket } from "./send-budget.ts";

/** How long a client has kept others waiting. */
export interface Delay {
  /** Since the network last took something while there was something to take. */
  readonly stalledMs: number;
  /** Since the oldest was queued. */
  readonly unsentMs: number;
}

/** Responses of one stream that the network has not taken. */
export class Outbox {
  readonly #budget: SendBudget;
  readonly #written: () => number;
  readonly #tickets = new Set<Ticket>();
  #progress = { bytes: 0, at: 0 };
  #bytes = 0;

  /** `written` tells how many bytes the network has taken so far on the stream's connection. */
  constructor(budget: SendBudget, written: () => number) {
    this.#budget = budget;
    this.#written = written;
  }

  get empty(): boolean {
    return this.#tickets.size === 0;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(ticket: Ticket): void {
    this.#tickets.add(ticket);
    this.#bytes += ticket.bytes;
  }

  /** The network took one. False: it was given up before. */
  taken(ticket: Ticket): boolean {
    if (!this.#tickets.delete(ticket)) return false;
    this.#bytes -= ticket.bytes;
    this.#budget.give(ticket);
    return true;
  }

  /** The stream is gone, and with it what it was to be sent. */
  clear(): void {
    for (const ticket of [...this.#tickets]) this.taken(ticket);
  }

  /** Looked at regularly, since what moved is known by comparison with the last look. */
  delay(now: number): Delay {
    const [oldest] = this.#tickets;
    const bytes = oldest === undefined ? 0 : this.#written();
    if (oldest === undefined || bytes !== this.#progress.bytes) this.#progress = { bytes, at: now };
    if (oldest === undefined) return { stalledMs: 0, unsentMs: 0 };
    return { stalledMs: now - Math.max(this.#progress.at, oldest.since), unsentMs: now - oldest.since };
  }
}
