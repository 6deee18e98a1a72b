import type { Channel, Received } from "./channel.ts";
import { ABSENT, believe, type Holding, heldVersion, UNKNOWN } from "./holding.ts";

/**
 * Keeps parts in step with the wholes that a client asks for (`ResourceProvider.partOf`), after a request about the wholes was taken in: what is
 * wanted of the parts may have changed, and a client that took a whole which it did not hold has none of its parts, whatever it was sent or says it
 * holds (Envoy keeps discovered hosts with their table, and forgets them with it).
 */
export function followWhole(channels: Iterable<Channel>, whole: Channel, { verdict, answered, before }: Received): void {
  for (const part of channels) {
    if (part.provider.partOf !== whole.provider.typeUrl) continue;
    part.dirty = true;
    const taken = verdict === "ack" && answered !== undefined ? answered.diff.changed : [];
    const isAsked = (name: string): boolean => whole.subscription?.names.names.has(name) === true;
    const anew = taken.map(({ name }) => name).filter((name) => isAsked(name) && NOT_HELD.has(heldVersion(before, name)));
    if (anew.length > 0) part.forgetPartsOf(anew);
  }
}

const NOT_HELD: ReadonlySet<string> = new Set([ABSENT, UNKNOWN]);

/** The holding of one of whom nothing is known about the parts of some wholes: it may not use them, and still claim them on its next stream. */
export function withoutPartsOf(holding: Holding, wholes: readonly string[]): Holding {
  const isPart = (name: string): boolean => wholes.includes(name.slice(0, Math.max(0, name.lastIndexOf("/"))));
  const held = [...holding.base.resources.keys(), ...holding.unlike.keys()].filter(isPart);
  return held.length === 0 ? holding : believe(holding, held, UNKNOWN);
}
