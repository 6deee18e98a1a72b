/** Who waits for a turn. */
export interface Served {
  /** Does what is due, in steps. */
  work(urgentOnly: boolean): Iterable<void>;
}

/**
 * Who is to be served next. A stream stands in a lane once, however often it asks: the turn, when it comes, looks at everything. The urgent lane
 * goes first, between any two streams of the other.
 */
export class PushQueue<S extends Served = Served> {
  readonly #urgent = new Set<S>();
  readonly #other = new Set<S>();

  get empty(): boolean {
    return this.#urgent.size + this.#other.size === 0;
  }

  add(stream: S, urgent: boolean): void {
    (urgent ? this.#urgent : this.#other).add(stream);
  }

  delete(stream: S): void {
    this.#urgent.delete(stream);
    this.#other.delete(stream);
  }

  /** Serves until nobody waits. What goes wrong for one is that one's alone. */
  *steps(failed: (stream: S, error: unknown) => void): Iterable<void> {
    for (;;) {
      const urgent = this.#urgent.size > 0;
      const lane = urgent ? this.#urgent : this.#other;
      const [stream] = lane;
      if (stream === undefined) return;
      lane.delete(stream);
      try {
        yield* stream.work(urgent);
      } catch (error) {
        failed(stream, error);
      }
    }
  }
}
