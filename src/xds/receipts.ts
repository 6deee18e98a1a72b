import type { Clock } from "../base/clock.ts";
import { contentHash } from "../base/hash.ts";
import type { ProxyView } from "../model/proxy.ts";
import { EMPTY_SET } from "./diff.ts";
import type { Holding } from "./holding.ts";
import type { NameSet, Wanted } from "./provider.ts";
import { listedVersions, setVersion } from "./set-version.ts";

/** Who asked for what, and what it holds by that. */
export interface Receipted {
  readonly typeUrl: string;
  readonly view: ProxyView;
  readonly wanted: Wanted;
  readonly holding: Holding;
}

/** Receipts of before a restart. */
export interface KeptReceipts {
  /** Whether this was offered from the very inputs that are in force now. */
  has(receipt: string): boolean;
  /** None of them will be asked for again. */
  drop(): void;
  /** Somebody comes, goes or has to be looked at. Called often. */
  stirred(): void;
}

/** After so long without another client that came back, all that was taken on trust is looked at. */
const LOOK_AFTER_MS = 5_000;
/** Where nobody came back for this long with what it was offered, nobody will: what clients say they hold is not summed up any more. */
const AWAITED_MS = 10 * 60_000;

/**
 * What a restart spares. Resources are a function of inputs and of who asks: a proxy that comes back to the same inputs holding what it held by then
 * has what it would be offered, and nothing need be made to know that. So thousands that come back at once cost their requests; what they hold is made
 * in quiet afterwards, so that the next change finds it there.
 */
export class Confirmations {
  readonly #clock: Clock;
  readonly #confirmed: () => void;
  #kept: KeptReceipts | undefined;
  #versionOf = listedVersions();
  readonly #openedAt: number;
  #lastAt: number | undefined;

  /** `confirmed` is told of each receipt that was found. */
  constructor(clock: Clock, kept: KeptReceipts | undefined, confirmed: () => void) {
    this.#clock = clock;
    this.#confirmed = confirmed;
    this.#kept = kept;
    this.#openedAt = clock.monotonic();
  }

  confirms(receipted: Receipted): boolean {
    const receipt = this.#kept === undefined ? undefined : this.receiptOf(receipted);
    if (receipt === undefined || this.#kept?.has(receipt) !== true) return false;
    this.#lastAt = this.#clock.monotonic();
    this.#confirmed();
    return true;
  }

  /** What stands for it in a file; undefined where it is not known what the client holds. */
  receiptOf(receipted: Receipted): string | undefined {
    const { typeUrl, view, wanted, holding } = receipted;
    const known = receipts.get(holding);
    if (known !== undefined && isOf(known.receipted, receipted)) return known.receipt;
    const version = this.#heldVersion(holding);
    if (version === undefined) return undefined;
    const receipt = contentHash([typeUrl, viewDigest(view), wanted.wildcard, namesDigest(wanted.names), version].join("\n"));
    receipts.set(holding, { receipted, receipt });
    return receipt;
  }

  /** True once: those who were confirmed are to be looked at now. */
  ends(): boolean {
    const isLooked = this.#lastAt !== undefined;
    const waits = isLooked ? LOOK_AFTER_MS : AWAITED_MS;
    if (this.#kept === undefined || this.#clock.monotonic() - (this.#lastAt ?? this.#openedAt) < waits) return false;
    this.#kept.drop();
    this.#kept = undefined;
    this.#lastAt = undefined;
    this.#versionOf = listedVersions();
    return isLooked;
  }

  #heldVersion({ base, unlike }: Holding): string | undefined {
    if (unlike.size === 0) return setVersion(base);
    return base === EMPTY_SET ? this.#versionOf(unlike) : undefined;
  }
}

/** The last receipt for what a stream holds: a change of one type leaves the others as they are, and all are written again. */
const receipts = new WeakMap<Holding, { readonly receipted: Receipted; readonly receipt: string }>();

/** Whether both are about the same; what is held is. */
const isOf = (a: Receipted, b: Receipted): boolean =>
  a.typeUrl === b.typeUrl && a.view === b.view && a.wanted.wildcard === b.wanted.wildcard && a.wanted.names === b.wanted.names;

const views = new WeakMap<ProxyView, string>();

/** All that resources may depend on of a proxy. A list of extensions has a name that stands for it. */
function viewDigest(view: ProxyView): string {
  const known = views.get(view) ?? contentHash(JSON.stringify({ ...view, extensions: view.extensions?.id }));
  views.set(view, known);
  return known;
}

const lists = new WeakMap<NameSet, string>();

function namesDigest(set: NameSet): string {
  const known = lists.get(set) ?? contentHash([...set.names].sort().join("\n"));
  lists.set(set, known);
  return known;
}
