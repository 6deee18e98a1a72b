import type { Channel } from "./channel.ts";
import type { Diff } from "./diff.ts";
import type { NameSets } from "./name-sets.ts";
import type { Companion, NameSet, ResourceProvider } from "./provider.ts";

const owedFor = new WeakMap<Companion, WeakMap<Diff, NameSet>>();

/**
 * Companions that one stream must be sent although they did not change, because their owner was sent (measured on Envoy 1.40: a changed EDS
 * cluster otherwise warms for ever). Owed from the moment the owner goes out, without waiting for its acknowledgement, which would never come;
 * and kept for a client that asks for the companion's type only later.
 */
export class Obligations {
  readonly #names: NameSets;
  readonly #owed = new Map<string, readonly NameSet[]>();

  constructor(names: NameSets) {
    this.#names = names;
  }

  /** The owners in `sent` go out. */
  owe(companion: Companion, sent: Diff): void {
    const memo = owedFor.get(companion) ?? new WeakMap<Diff, NameSet>();
    owedFor.set(companion, memo);
    const names = memo.get(sent) ?? this.#names.of(sent.changed.flatMap((resource) => companion.namesOf(resource)));
    memo.set(sent, names);
    if (names.names.size > 0) this.#owed.set(companion.typeUrl, this.#names.gather(this.#owed.get(companion.typeUrl) ?? [], names));
  }

  /** Passes what is owed on to the channel of the companion's type: of that, what the client wants. Tells whether there was any. */
  claim(channel: Channel): boolean {
    const { typeUrl } = channel.provider;
    const owed = this.#owed.get(typeUrl);
    const wanted = channel.subscription;
    if (owed === undefined || wanted === undefined) return false;
    this.#owed.delete(typeUrl);
    let claimed = false;
    for (const set of owed) {
      const mine = this.#wantedOf(set, wanted.names, wanted.wildcard);
      claimed ||= mine.names.size > 0;
      channel.oblige(mine);
    }
    return claimed;
  }

  #wantedOf(owed: NameSet, wanted: NameSet, wildcard: boolean): NameSet {
    if (wildcard || owed === wanted) return owed;
    const mine = [...owed.names].filter((name) => wanted.names.has(name));
    return mine.length === owed.names.size ? owed : this.#names.of(mine);
  }
}

/**
 * Whether versions a client claims to hold are believed. A stream that opens with a companion type before its owner comes from a client whose
 * owners are still warming: what it holds of the companion is what it is waiting to be sent again.
 */
export function isTrusted(
  { typeUrl }: ResourceProvider,
  owners: Iterable<ResourceProvider>,
  channels: Pick<ReadonlyMap<string, unknown>, "has">,
): boolean {
  for (const owner of owners) if (owner.companion?.typeUrl === typeUrl && !channels.has(owner.typeUrl)) return false;
  return true;
}
