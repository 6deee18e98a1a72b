import type { ProxyView } from "../model/proxy.ts";
import type { DiscoveryVariant } from "../wire/discovery-stream.ts";
import type { Encoded, FailedResource, ResourceSet } from "../wire/encoded.ts";
import type { Node } from "../wire/node.ts";
import type { Channel } from "./channel.ts";
import { heldResource } from "./holding.ts";
import type { Wanted } from "./provider.ts";

/** One connected proxy, for `/debug/syncz`, `/debug/adsz` and `proxy-status`. Times are milliseconds since the epoch. */
export interface StreamState {
  readonly id: string;
  readonly node: string;
  readonly variant: DiscoveryVariant;
  readonly peer: string;
  readonly connectedAt: number;
  readonly view: ProxyView | undefined;
  readonly types: readonly TypeState[];
}

export interface TypeState {
  readonly typeUrl: string;
  readonly wildcard: boolean;
  readonly names: number;
  readonly held: number;
  /** Everything offered was sent and acknowledged (what the proxy rejected aside). */
  readonly inSync: boolean;
  readonly sentNonce: string | undefined;
  readonly sentAt: number | undefined;
  readonly ackedNonce: string | undefined;
  readonly ackedAt: number | undefined;
  readonly nacks: number;
  readonly lastError: string | undefined;
  readonly lastNackAt: number | undefined;
  /** Rejected by this proxy and not sent again until their content changes. */
  readonly rejected: readonly {
    readonly name: string;
    readonly version: string;
    readonly error: string;
    readonly fallback: string | undefined;
  }[];
  /** Could not be made: the last good version is served, where there is one. */
  readonly failed: readonly FailedResource[];
}

/** What a proxy holds and should hold, for `config_dump`. */
export interface StreamDump {
  readonly id: string;
  readonly node: Node;
  readonly view: ProxyView;
  readonly types: readonly TypeDump[];
}

export interface TypeDump {
  readonly typeUrl: string;
  readonly wanted: Wanted;
  /** Known to be held by the proxy. */
  readonly held: readonly Encoded[];
  readonly offered: ResourceSet;
}

/** Counts kept per type and stream. */
export interface ChannelRecord {
  sentAt: number | undefined;
  ackedNonce: string | undefined;
  ackedAt: number | undefined;
  nacks: number;
  lastError: string | undefined;
  lastNackAt: number | undefined;
}

export const newRecord = (): ChannelRecord => ({
  sentAt: undefined,
  ackedNonce: undefined,
  ackedAt: undefined,
  nacks: 0,
  lastError: undefined,
  lastNackAt: undefined,
});

export function typeState(channel: Channel): TypeState {
  const { subscription, rejections } = channel;
  return {
    typeUrl: channel.provider.typeUrl,
    wildcard: subscription?.wildcard ?? false,
    names: subscription?.names.names.size ?? 0,
    held: channel.holding.unlike.size === 0 ? channel.holding.base.resources.size : heldResources(channel).length,
    inSync: channel.inSync,
    sentNonce: channel.lastNonce,
    ...channel.record,
    rejected: [...rejections.rejected].map(([name, { version, error, fallback }]) => ({
      name,
      version,
      error,
      fallback: fallback?.version,
    })),
    failed: channel.failed,
  };
}

/** What a proxy holds and should hold of a type; undefined where it has not asked for it. */
export function typeDump(channel: Channel, view: ProxyView): TypeDump | undefined {
  const { provider, wanted } = channel;
  return wanted && { typeUrl: provider.typeUrl, wanted, held: heldResources(channel), offered: provider.offered(view, wanted) };
}

function heldResources({ holding }: Channel): readonly Encoded[] {
  if (holding.unlike.size === 0) return [...holding.base.resources.values()];
  return [...holding.base.resources.values()].filter((resource) => heldResource(holding, resource.name) !== undefined);
}
