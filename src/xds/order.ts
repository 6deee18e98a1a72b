import type { Channel } from "./channel.ts";

/*
 * Make before break (https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol, "Eventual consistency considerations"): what is referred
 * to comes before what refers to it, and goes after. Which types those are, the table of providers says. Both waits end: a client that does not
 * answer for one type still gets the others.
 */

type Channels = Pick<ReadonlyMap<string, Channel>, "get">;

export interface Waiting {
  readonly now: number;
  readonly timeoutMs: number;
}

/** Milliseconds that additions to this type still have to wait for types they refer to; 0 means go. */
export function sendBlockedFor(channel: Channel, channels: Channels, { now, timeoutMs }: Waiting): number {
  let wait = 0;
  for (const typeUrl of channel.provider.sendAfter ?? []) {
    const first = channels.get(typeUrl);
    if (first?.inFlight !== undefined && first.inFlight.diff.changed.length > 0)
      wait = Math.max(wait, first.inFlight.sentAt + timeoutMs - now);
    else if (first?.waiting === true) wait = Math.max(wait, timeoutMs);
  }
  return wait;
}

/**
 * Milliseconds that removals from this type still have to wait for types that may refer to what is removed; 0 means go. A type the client has not
 * asked for yet, but will, counts while the stream is young: after a reconnect, clusters come first and routes follow.
 */
export function removalsBlockedFor(
  channel: Channel,
  channels: Channels,
  { now, timeoutMs, openedAt, expected }: Waiting & { readonly openedAt: number; readonly expected: (typeUrl: string) => boolean },
): number {
  const patience = (channel.removalsSince ?? now) + timeoutMs - now;
  let wait = 0;
  for (const typeUrl of channel.provider.removeAfter ?? []) {
    const referring = channels.get(typeUrl);
    if (referring === undefined) wait = expected(typeUrl) ? Math.max(wait, openedAt + timeoutMs - now) : wait;
    else if (!referring.settled) wait = patience;
  }
  return Math.max(0, Math.min(wait, patience));
}
