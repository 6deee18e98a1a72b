import { nextTurn } from "../base/slice.ts";

/** What all writers together hand over in one turn of the loop: some two milliseconds of encrypting and sending. */
const TURN_BYTES = 1024 * 1024;
/** What is smaller does not wait behind others: it is soon done, and often urgent. */
const SMALL_BYTES = 16 * 1024;

interface Waiting {
  readonly bytes: number;
  go(): void;
}

/**
 * Divides the turns of the loop between those who write much. When a large push has reached hundreds of sockets, all of them take their next piece in the same turn,
 * and who calls in that moment, for a certificate for example, waits until all of it is encrypted (measured with 300 streams over TLS: turns of up to 35 ms of CPU).
 */
export class SharedPace {
  readonly #waiting: Waiting[] = [];
  #left = TURN_BYTES;
  #renewing = false;

  /** Calls `go` at once while there is room in this turn, else in a later one, in the order in which it was asked. */
  take(bytes: number, go: () => void): void {
    if (bytes > SMALL_BYTES && (this.#left <= 0 || this.#waiting.length > 0)) {
      this.#waiting.push({ bytes, go });
      return;
    }
    this.#spend(bytes);
    go();
  }

  /** Whoever waits does so because something was spent, so a next turn is always under way. */
  #spend(bytes: number): void {
    this.#left -= bytes;
    if (this.#renewing) return;
    this.#renewing = true;
    void nextTurn().then(() => this.#renew());
  }

  #renew(): void {
    this.#renewing = false;
    this.#left = TURN_BYTES;
    while (this.#left > 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#spend(next.bytes);
      next.go();
    }
  }
}
