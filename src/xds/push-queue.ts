import type { Clock } from "../base/clock.ts";

/**
 * Urgent types that streams have had before, what else of such types they are due, further types of streams that have begun to be served, and the
 * first response of streams that come.
 */
export type TurnLane = "urgent" | "known" | "joining" | "first";

/** Who waits for a turn. */
export interface Served {
  /** Does what is due: at once, or in steps where it takes longer. */
  work(urgentOnly: boolean): Iterable<void> | undefined;
}

export interface QueueOptions<S> {
  readonly clock: Pick<Clock, "monotonic">;
  /** What goes wrong for one is that one's alone. */
  failed(stream: S, error: unknown): void;
}

/** A turn that lasts longer is put aside between steps while others wait: they go on in turns with it. */
const QUANTUM_MS = 20;
/** Turns put aside at a time; what each has begun is kept in memory. */
const MOST_ASIDE = 3;
/** So many turns of streams that are served already for each one of a newcomer: they do not wait for a crowd that comes, nor the crowd for ever. */
const KNOWN_PER_FIRST = 3;

/** A turn that has begun. */
interface Turn<S> {
  readonly stream: S;
  readonly lane: TurnLane;
  /** What is left to do. */
  readonly steps: Iterator<void> | undefined;
}

/**
 * Who is to be served next. A stream stands in a lane once, however often it asks: the turn, when it comes, looks at everything. The urgent lane
 * goes first, between any two steps of the others; proxies that need long do not hold up those that need little; and of those that come, one is
 * served to the end before the next is begun, as far as it asks for more in time.
 */
export class PushQueue<S extends Served = Served> {
  readonly #lanes: Record<TurnLane, Set<S>> = {
    ...{ urgent: new Set(), known: new Set(), joining: new Set(), first: new Set() },
  };
  readonly #options: QueueOptions<S>;
  #aside: Turn<S>[] = [];
  #asideIsNext = false;
  /** Turns of the known lane since the last one of the other. */
  #knownTurns = 0;

  constructor(options: QueueOptions<S>) {
    this.#options = options;
  }

  get empty(): boolean {
    return this.#aside.length === 0 && this.#lanes.urgent.size === 0 && !this.#hasFresh;
  }

  /** Streams that wait for a first response of some type. */
  get newcomers(): number {
    return this.#lanes.joining.size + this.#lanes.first.size;
  }

  add(stream: S, lane: TurnLane): void {
    this.#lanes[lane].add(stream);
  }

  delete(stream: S): void {
    for (const lane of Object.values(this.#lanes)) lane.delete(stream);
    this.#aside = this.#aside.filter((turn) => turn.stream !== stream);
  }

  /** Serves until nobody waits. */
  *steps(): Iterable<void> {
    for (let turn = this.#next(); turn !== undefined; turn = this.#next()) {
      if (turn.steps === undefined) yield;
      else yield* this.#run(turn);
    }
  }

  *#run(turn: Turn<S>): Iterable<void> {
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    while (this.#step(turn)) {
      yield;
      if (turn.lane === "urgent") continue;
      for (let urgent = this.#begin("urgent"); urgent !== undefined; urgent = this.#begin("urgent")) {
        if (urgent.steps === undefined) yield;
        else yield* this.#run(urgent);
      }
      if (clock.monotonic() - startedAt < QUANTUM_MS || !this.#othersWait) continue;
      this.#aside.push(turn);
      this.#asideIsNext = false;
      return;
    }
  }

  /** False when the turn is over. */
  #step({ stream, steps }: Turn<S>): boolean {
    try {
      return steps?.next().done === false;
    } catch (error) {
      this.#options.failed(stream, error);
      return false;
    }
  }

  get #hasFresh(): boolean {
    return this.#lanes.known.size + this.newcomers > 0;
  }

  get #othersWait(): boolean {
    return this.#aside.length > 0 || this.#hasFresh;
  }

  /** New turns and those put aside alternate, so that either kind always gets on. */
  #next(): Turn<S> | undefined {
    const urgent = this.#begin("urgent");
    if (urgent !== undefined) return urgent;
    const resumes = this.#asideIsNext || this.#aside.length >= MOST_ASIDE;
    this.#asideIsNext = !resumes;
    return (resumes ? this.#aside.shift() : undefined) ?? this.#fresh() ?? this.#aside.shift();
  }

  #fresh(): Turn<S> | undefined {
    const newcomersTurn = this.#knownTurns >= KNOWN_PER_FIRST;
    const turn =
      (newcomersTurn ? undefined : this.#begin("known")) ?? this.#begin("joining") ?? this.#begin("first") ?? this.#begin("known");
    this.#knownTurns = turn?.lane === "known" ? this.#knownTurns + 1 : 0;
    return turn;
  }

  #begin(lane: TurnLane): Turn<S> | undefined {
    const waiting = this.#lanes[lane];
    if (waiting.size === 0) return undefined; // most are, and each is asked between any two turns
    const [stream] = waiting;
    if (stream === undefined) return undefined;
    waiting.delete(stream);
    return { stream, lane, steps: this.#start(stream, lane) };
  }

  #start(stream: S, lane: TurnLane): Iterator<void> | undefined {
    try {
      return stream.work(lane === "urgent")?.[Symbol.iterator]();
    } catch (error) {
      this.#options.failed(stream, error);
      return undefined;
    }
  }
}
