import type { Clock } from "../base/clock.ts";
import type { Diff } from "./diff.ts";

/** What came of one applied change. */
export interface RoundSummary {
  readonly round: number;
  readonly reason: string;
  /** Resources added, changed or removed, by type: each counted once, however many proxies were sent it. */
  readonly resources: ReadonlyMap<string, number>;
  /** Proxies that were sent something. */
  readonly proxies: number;
  /** From the push to the last acknowledgement; what is not acknowledged in time is in `unsettled`. */
  readonly ms: number;
  readonly rejections: number;
  readonly unsettled: number;
}

interface Round {
  readonly id: number;
  readonly reason: string;
  readonly startedAt: number;
  readonly waiting: Set<object>;
  readonly touched: Set<object>;
  readonly names: Map<string, Set<string>>;
  readonly seen: WeakSet<Diff>;
  rejections: number;
  readonly cancel: () => void;
}

export interface RoundDeps {
  readonly clock: Clock;
  /** A round is closed after this long although some proxy has not answered. */
  readonly timeoutMs: number;
  done(summary: RoundSummary): void;
  converged(ms: number): void;
  /** A stream has nothing to send and nothing unanswered, or is gone. */
  settled?(): void;
}

/** Follows each push from its start until every stream that was there has acknowledged all it was sent. */
export class Rounds {
  readonly #deps: RoundDeps;
  readonly #open = new Map<number, Round>();
  /** The first push that a stream is not through with; of those that are through with all of them, nothing. */
  readonly #behind = new WeakMap<object, number>();
  #last = 0;

  constructor(deps: RoundDeps) {
    this.#deps = deps;
  }

  /** Gives the number of the push. */
  begin(reason: string, streams: Iterable<object>): number {
    this.#last += 1;
    const id = this.#last;
    const round: Round = {
      id,
      reason,
      startedAt: this.#deps.clock.monotonic(),
      waiting: new Set(streams),
      touched: new Set(),
      names: new Map(),
      seen: new WeakSet(),
      rejections: 0,
      cancel: this.#deps.clock.after(this.#deps.timeoutMs, () => this.#close(id)),
    };
    this.#open.set(id, round);
    for (const stream of round.waiting) if (!this.#behind.has(stream)) this.#behind.set(stream, id);
    if (round.waiting.size === 0) this.#close(id);
    return id;
  }

  /** The last push of which a stream has acknowledged all it was due, however long that took. */
  upTo(stream: object): number {
    return (this.#behind.get(stream) ?? this.#last + 1) - 1;
  }

  sent(stream: object, typeUrl: string, diff: Diff): void {
    for (const round of this.#open.values()) {
      if (!round.waiting.has(stream)) continue;
      round.touched.add(stream);
      if (round.seen.has(diff)) continue;
      round.seen.add(diff);
      const names = round.names.get(typeUrl) ?? new Set<string>();
      round.names.set(typeUrl, names);
      for (const resource of diff.changed) names.add(resource.name);
      for (const name of diff.removed) names.add(name);
    }
  }

  rejected(stream: object): void {
    for (const round of this.#open.values()) if (round.waiting.has(stream)) round.rejections += 1;
  }

  /** The stream has nothing to send and nothing unanswered, or is gone. */
  settled(stream: object): void {
    this.#behind.delete(stream);
    for (const round of this.#open.values()) {
      if (!round.waiting.delete(stream)) continue;
      if (round.touched.has(stream)) this.#deps.converged(this.#deps.clock.monotonic() - round.startedAt);
      if (round.waiting.size === 0) this.#close(round.id);
    }
    this.#deps.settled?.();
  }

  #close(id: number): void {
    const round = this.#open.get(id);
    if (round === undefined) return;
    this.#open.delete(id);
    round.cancel();
    this.#deps.done({
      round: round.id,
      reason: round.reason,
      resources: new Map([...round.names].map(([typeUrl, names]) => [typeUrl, names.size])),
      proxies: round.touched.size,
      ms: this.#deps.clock.monotonic() - round.startedAt,
      rejections: round.rejections,
      unsettled: round.waiting.size,
    });
  }
}
