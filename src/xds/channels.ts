import type { Channel } from "./channel.ts";
import type { TurnLane } from "./push-queue.ts";

/** The types that one client asked for. They are gone through many times at each change: so a list, and questions that leave no garbage behind. */
export class Channels {
  readonly #order: Pick<ReadonlyMap<string, unknown>, "keys">;
  readonly #byType = new Map<string, Channel>();
  #list: readonly Channel[] = [];

  /** Types are listed in the order in which they are sent, that of the keys of `order`. */
  constructor(order: Pick<ReadonlyMap<string, unknown>, "keys">) {
    this.#order = order;
  }

  get list(): readonly Channel[] {
    return this.#list;
  }

  get(typeUrl: string): Channel | undefined {
    return this.#byType.get(typeUrl);
  }

  has(typeUrl: string): boolean {
    return this.#byType.has(typeUrl);
  }

  add(channel: Channel): void {
    this.#byType.set(channel.provider.typeUrl, channel);
    this.#list = [...this.#order.keys()].flatMap((typeUrl) => this.#byType.get(typeUrl) ?? []);
  }

  /** Inputs changed: everything has to be looked at again. */
  makeDirty(): void {
    this.#list.forEach(makeDirty);
  }

  /** Nothing has to be sent, and all that was is answered. */
  get settled(): boolean {
    return this.#list.every(isSettled);
  }

  get waiting(): boolean {
    return this.#list.some(isWaiting);
  }

  get haveRemovals(): boolean {
    return this.#list.some(hasRemovals);
  }

  /** Everything is settled, and nothing had to be sent for it. */
  get areSettledInSilence(): boolean {
    return this.#list.length > 0 && !this.#list.some(isKnown) && this.settled;
  }

  /**
   * Lets the first type send a response, though there is nothing to say. Envoy takes a stream for good once something came on it; until then it waits longer before
   * each new attempt, up to half a minute, and says in its log since when the stream before was lost.
   */
  greet(): void {
    this.#list[0]?.greet();
  }

  /** An urgent type may have to be sent. */
  get urgentlyDirty(): boolean {
    return this.#list.some(isUrgentlyDirty);
  }

  /** A type that is not urgent may have to be sent. */
  get dirtyOtherwise(): boolean {
    return this.#list.some(isDirtyOtherwise);
  }

  /** What is due besides urgent types: a first response of some type alone, or what changed too. */
  get lane(): TurnLane {
    if (this.#list.some(isKnownAndDirty)) return "known";
    return this.#list.some(isKnown) ? "joining" : "first";
  }
}

/** Whether some of it is to be removed later. */
export const hasRemovals = (channel: Channel): boolean => channel.removalsSince !== undefined;
const isDirtyOtherwise = (channel: Channel): boolean => channel.dirty && !channel.urgent;

const isSettled = (channel: Channel): boolean => channel.settled;
const isWaiting = (channel: Channel): boolean => channel.waiting;
const isUrgentlyDirty = (channel: Channel): boolean => channel.dirty && channel.urgent;
const isKnown = (channel: Channel): boolean => channel.lastSequence > 0;
const isKnownAndDirty = (channel: Channel): boolean => isKnown(channel) && isDirtyOtherwise(channel);
const makeDirty = (channel: Channel): void => {
  channel.dirty = true;
};
