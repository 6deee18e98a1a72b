import type { ProxyView } from "../model/proxy.ts";
import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import type { DiscoveryVariant } from "../wire/discovery-stream.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";
import { CLUSTER_TYPE, LISTENER_TYPE } from "../wire/type-urls.ts";
import { type Diff, diff, EMPTY_SET, isEmptyDiff, substitute } from "./diff.ts";
import type { Frame } from "./frames.ts";
import { ABSENT, believe, type Holding, heldResource, NOTHING_HELD, notHeld, type Plan, plan, restrict, UNKNOWN } from "./holding.ts";
import type { LastGood } from "./last-good.ts";
import { type NameSets, NO_NAMES } from "./name-sets.ts";
import { withoutPartsOf } from "./parts.ts";
import type { NameSet, ResourceProvider, Wanted } from "./provider.ts";
import type { Confirmations, Receipted } from "./receipts.ts";
import { Rejections } from "./rejections.ts";
import { setVersion } from "./set-version.ts";
import { newRecord } from "./state.ts";
import { type Judgement, judgeDelta, judgeSotw, type Subscription } from "./subscription.ts";

/** A response that the client has not answered yet. */
export interface InFlight {
  readonly nonce: string;
  /** What acknowledges it, where that is known beforehand. */
  readonly ack: Uint8Array | undefined;
  readonly sentAt: number;
  readonly diff: Diff;
  readonly after: Holding;
}

/** What should go out now. */
export interface Outgoing {
  readonly plan: Plan;
  /** False: nothing has to be said. */
  readonly send: boolean;
  /** It says nothing, and is owed to nobody: see `greet`. */
  readonly isGreeting: boolean;
  readonly content: Diff;
}

export interface ChannelDeps {
  readonly variant: DiscoveryVariant;
  readonly names: NameSets;
  readonly lastGood: LastGood;
  readonly confirmations: Pick<Confirmations, "confirms">;
  /** The type that this one has parts of, on the same stream. */
  whole?(): Channel | undefined;
}

/** What came of a request. */
export interface Received {
  readonly verdict: Judgement["verdict"];
  /** The response that was answered. */
  readonly answered: InFlight | undefined;
  /** Names now held to be at fault for a rejection. */
  readonly offenders: readonly string[];
  /** What the client held until it answered. */
  readonly before: Holding;
}

/**
 * One type on one stream: what is wanted, what the client holds, the one response in flight. Changes that come meanwhile only make the channel
 * dirty, so nothing queues up behind a client that does not answer.
 */
export class Channel {
  readonly provider: ResourceProvider;
  readonly rejections: Rejections;
  /** When what was said, for people. */
  readonly record = newRecord();
  readonly #deps: ChannelDeps;
  #subscription: Subscription | undefined;
  #holding: Holding = NOTHING_HELD;
  #inFlight: InFlight | undefined;
  #obliged: readonly NameSet[] = [];
  #mustRespond = false;
  #greets = false;
  #lastNonce: string | undefined;
  #lastSequence = 0;
  #lastBytes = 0;
  #failed: ResourceSet["failed"] = [];
  /** What was noted last as good for others too. */
  #noted: ResourceSet | undefined;
  /** The offer that was looked at last, and what the client holds when it has come to that: nothing has to be said while both stand. */
  #looked: { readonly offered: ResourceSet; readonly after: Holding } | undefined;
  #dirty = false;
  /** The last look at what is offered led to something, and nothing has happened since. */
  #isLooked = false;
  /** There is something to send, and it waits for its turn. */
  waiting = false;
  /** Since when removals wait. */
  removalsSince: number | undefined;

  constructor(provider: ResourceProvider, deps: ChannelDeps) {
    this.provider = provider;
    this.rejections = new Rejections((resource) => provider.plain?.(resource));
    this.#deps = deps;
  }

  get subscription(): Subscription | undefined {
    return this.#subscription;
  }

  /** What its provider is asked for: of parts, those of the wholes that the client asked for. */
  get wanted(): Wanted | undefined {
    if (this.provider.partOf === undefined || this.#subscription === undefined) return this.#subscription;
    return { wildcard: this.#subscription.wildcard, names: this.#deps.whole?.()?.subscription?.names ?? NO_NAMES };
  }

  get holding(): Holding {
    return this.#holding;
  }

  get inFlight(): InFlight | undefined {
    return this.#inFlight;
  }

  get lastSequence(): number {
    return this.#lastSequence;
  }

  /** The size of the last response. */
  get lastBytes(): number {
    return this.#lastBytes;
  }

  get lastNonce(): string | undefined {
    return this.#lastNonce;
  }

  /** Resources that could not be made at the last look, and were left as they are. */
  get failed(): ResourceSet["failed"] {
    return this.#failed;
  }

  /** What is offered may differ from what the client was told. */
  get dirty(): boolean {
    return this.#dirty;
  }

  set dirty(isDirty: boolean) {
    this.#dirty = isDirty;
    if (isDirty) this.#isLooked = false;
  }

  /** Something may have to be sent, and may be sent. */
  get ready(): boolean {
    return this.dirty && this.#inFlight === undefined && this.#subscription !== undefined;
  }

  /** The first response of a type comes in the order of types, whatever its lane: an assignment before its cluster would have to be sent twice. */
  get urgent(): boolean {
    return this.provider.urgent === true && this.#lastSequence > 0;
  }

  get settled(): boolean {
    return !this.dirty && this.#inFlight === undefined;
  }

  /** Settled by what is offered, and not because that could not be worked out. */
  get inSync(): boolean {
    return this.settled && this.#isLooked;
  }

  /** Takes a request in. `trusted`: the versions it claims to hold are believed. */
  receive(request: DiscoveryRequest, trusted: boolean): Received {
    const judge = this.#deps.variant === "delta" ? judgeDelta : judgeSotw;
    const nonces = { inFlight: this.#inFlight?.nonce, last: this.#lastNonce };
    const judgement = judge({ current: this.#subscription, request, nonces, names: this.#deps.names });
    const answered = judgement.verdict === "ack" || judgement.verdict === "nack" ? this.#inFlight : undefined;
    const before = this.#holding;
    const offenders = this.#answer(judgement.verdict, request.error?.message ?? "");
    if (judgement.first) this.#begin(request, trusted);
    this.#subscribe(judgement, judgement.first && trusted ? request.initialVersions : NO_VERSIONS);
    return { verdict: judgement.verdict, answered, offenders, before };
  }

  /** Takes in a request that is nothing but the acknowledgement of what is in flight, unread. Undefined: it is another, and `receive` is for those. */
  acknowledged(bytes: Uint8Array): Received | undefined {
    const answered = this.#inFlight;
    if (answered?.ack?.length !== bytes.length || Buffer.compare(answered.ack, bytes) !== 0) return undefined;
    const before = this.#holding;
    return { verdict: "ack", answered, offenders: this.#answer("ack", ""), before };
  }

  /** Whether the client has the parts of some wholes is not known, whatever it was sent. */
  forgetPartsOf(wholes: readonly string[]): void {
    this.#reconsider((holding) => withoutPartsOf(holding, wholes));
  }

  /** The client needs these again, although they did not change. */
  oblige(names: NameSet): void {
    if (names.names.size === 0) return;
    this.#obliged = this.#deps.names.gather(this.#obliged, names);
    this.dirty = true;
  }

  /** Whether a look would find that nothing has to be said, which is then settled. Cheap, and so asked before; false may mean "not known". */
  standsFor(view: ProxyView): boolean {
    if (!this.ready || this.#mustRespond || this.#obliged.length > 0 || this.rejections.probing) return false;
    if (!this.#isAsItWas(view) && !this.#isConfirmed(view)) return false;
    this.dirty = false;
    this.#isLooked = true;
    this.waiting = false;
    return true;
  }

  /** The next response is sent although there may be nothing to say. Not of whole sets, which would be sent again. */
  greet(): void {
    this.#greets = true;
    this.#mustRespond = true;
    this.dirty = true;
  }

  /** What the client was offered and holds, for a receipt; undefined where either may come to be otherwise with the same inputs. */
  receipted(view: ProxyView): Receipted | undefined {
    const { wanted } = this;
    if (wanted === undefined || !this.inSync || this.provider.asksAnew === true) return undefined;
    if (this.#failed.length > 0 || !this.rejections.none) return undefined;
    return { typeUrl: this.provider.typeUrl, view, wanted, holding: this.#holding };
  }

  /** Works out what to send. Changes nothing: `sent` or `skipped` must follow, or the question be asked again. */
  outgoing(view: ProxyView, keepRemoved: boolean): Outgoing {
    const offered = this.provider.offered(view, this.wanted ?? NOTHING_WANTED);
    const { target, silent } = this.#effective(offered, view);
    const next = plan(this.#holding, target, { obliged: this.#obliged, silent, keepRemoved });
    const { content, needed } = this.#content(next);
    this.#looked = next.removalsLeft || offered.failed.length > 0 ? undefined : { offered, after: next.after };
    const isNeeded = !isEmptyDiff(needed);
    return { plan: next, content, send: this.#mustRespond || isNeeded, isGreeting: this.#greets && !isNeeded };
  }

  /**
   * What a response says of the whole set. In the delta variant it is for people to compare, and only of all there is: of what a client names it
   * would tell apart responses that are the same.
   */
  versionOf(set: ResourceSet): string {
    return this.#deps.variant === "sotw" || this.#subscription?.wildcard === true ? setVersion(set) : "";
  }

  sent(outgoing: Outgoing, frame: Frame, now: number): void {
    const { nonce, ack } = frame;
    this.#inFlight = { nonce, ack, sentAt: now, diff: outgoing.plan.diff, after: outgoing.plan.after };
    this.#lastNonce = nonce;
    this.#lastSequence = frame.sequence;
    this.#lastBytes = frame.size;
    this.#done(outgoing);
  }

  /** There was nothing to say. True: there is now, since what was to be tried is no longer there to be tried, and the next is. */
  skipped(outgoing: Outgoing): boolean {
    this.#holding = outgoing.plan.after;
    this.#done(outgoing);
    const again = this.rejections.accept();
    this.dirty ||= again;
    return again;
  }

  /** What a resource was made from, for the log; nothing where that cannot be said. */
  origin(view: ProxyView | undefined, name: string): { readonly name: string; readonly from: readonly string[] } {
    try {
      return { name, from: view === undefined ? [] : this.provider.provenance(view, name) };
    } catch {
      return { name, from: [] };
    }
  }

  #isAsItWas(view: ProxyView): boolean {
    const standing = this.provider.standing?.(view, this.wanted ?? NOTHING_WANTED);
    return standing !== undefined && standing === this.#looked?.offered && this.#looked.after === this.#holding;
  }

  /** Whether the client, which has been sent nothing yet, came back with what it was offered before a restart and would be offered now. */
  #isConfirmed(view: ProxyView): boolean {
    const { wanted } = this;
    if (wanted === undefined || this.#lastSequence > 0 || this.#looked !== undefined || this.provider.asksAnew === true) return false;
    return this.#deps.confirmations.confirms({ typeUrl: this.provider.typeUrl, view, wanted, holding: this.#holding });
  }

  get #sendsWholeSet(): boolean {
    return this.#deps.variant === "sotw" && (this.#subscription?.wildcard === true || WHOLE_SET_TYPES.has(this.provider.typeUrl));
  }

  #done(outgoing: Outgoing): void {
    this.#obliged = this.#undecided();
    this.#mustRespond = false;
    this.#greets = false;
    this.waiting = false;
    this.#isLooked = true;
    this.dirty = outgoing.plan.removalsLeft;
    if (!outgoing.plan.removalsLeft) this.removalsSince = undefined;
  }

  /** What was asked for and nothing was said of, because it is not known yet who may have it: the answer is still owed. */
  #undecided(): readonly NameSet[] {
    if (this.#failed.length === 0) return this.#obliged.length === 0 ? this.#obliged : [];
    const open = new Set(this.#failed.flatMap(({ name, standIn }) => (standIn === "own" ? [name] : [])));
    if (open.size === 0) return [];
    return this.#obliged
      .map(({ names }) => this.#deps.names.of([...names].filter((name) => open.has(name))))
      .filter(({ names }) => names.size > 0);
  }

  #answer(verdict: Judgement["verdict"], error: string): readonly string[] {
    const answered = this.#inFlight;
    if (answered === undefined || (verdict !== "ack" && verdict !== "nack")) return [];
    this.#inFlight = undefined;
    if (verdict === "ack" || answered.diff.changed.length === 0) {
      this.#holding = answered.after;
      if (this.rejections.accept()) this.dirty = true;
      return [];
    }
    const offenders = this.rejections.refuse(answered.diff, this.#holding, error);
    const names = [...answered.diff.changed.map((resource) => resource.name), ...answered.diff.removed];
    this.#holding = believe(this.#holding, names, UNKNOWN);
    // What a whole set leaves out is gone: until one was accepted, that has not been said.
    this.#mustRespond = this.#sendsWholeSet;
    this.dirty = true;
    return offenders;
  }

  /** A first request: the client holds what it says, if it can be believed, else perhaps some version of it. */
  #begin(request: DiscoveryRequest, trusted: boolean): void {
    const versions = trusted ? request.initialVersions : new Map([...request.initialVersions.keys()].map((name) => [name, UNKNOWN]));
    this.#holding = versions.size === 0 ? NOTHING_HELD : { base: EMPTY_SET, unlike: versions };
    this.#inFlight = undefined;
    this.#obliged = [];
    this.#mustRespond = request.initialVersions.size === 0;
    this.dirty = true;
  }

  #subscribe(judgement: Judgement, known: ReadonlyMap<string, string>): void {
    if (judgement.subscription !== this.#subscription) {
      this.#subscription = judgement.subscription;
      this.dirty = true;
    }
    if (judgement.dropped.length > 0) {
      this.#reconsider((holding) => believe(holding, judgement.dropped, ABSENT));
      const left = this.#obliged.map((set) => this.#deps.names.edit(set, [], judgement.dropped));
      this.#obliged = left.filter(({ names }) => names.size > 0);
    }
    if (judgement.leftWildcard) this.#reconsider((holding) => restrict(holding, judgement.subscription.names));
    this.oblige(this.#deps.names.of(notHeld(judgement.asked, known)));
  }

  /** Corrects what the client holds, and what it will hold when it accepts what is in flight. */
  #reconsider(correct: (holding: Holding) => Holding): void {
    this.#holding = correct(this.#holding);
    if (this.#inFlight !== undefined) this.#inFlight = { ...this.#inFlight, after: correct(this.#inFlight.after) };
    this.dirty = true;
  }

  /** What this client is to hold: the offer, with the last good in place of what could not be made, and then of what it rejected. */
  #effective(offered: ResourceSet, view: ProxyView): { readonly target: ResourceSet; readonly silent: ReadonlySet<string> } {
    const { typeUrl } = this.provider;
    const made = offered.failed.length === 0 ? offered : substitute(offered, this.#standIns(offered, view));
    if (made !== this.#noted) this.#deps.lastGood.note(typeUrl, view, made);
    this.#noted = made;
    if (offered.failed.length === 0 && this.rejections.none) {
      this.#failed = offered.failed;
      return { target: made, silent: NOTHING_SILENT };
    }
    const rejected = this.rejections.replacements(made);
    const missing = offered.failed.filter(({ name }) => !made.resources.has(name)).map(({ name }) => name);
    const withheld = [...rejected].filter(([, resource]) => resource === undefined).map(([name]) => name);
    this.#failed = offered.failed;
    return { target: substitute(made, rejected), silent: new Set([...missing, ...withheld]) };
  }

  #standIns(offered: ResourceSet, view: ProxyView): ReadonlyMap<string, Encoded> {
    const found = new Map<string, Encoded>();
    for (const { name, standIn } of offered.failed) {
      const ofOthers = standIn === "own" ? undefined : this.#deps.lastGood.find(this.provider.typeUrl, view, name);
      const lastGood = heldResource(this.#holding, name) ?? ofOthers;
      if (!offered.resources.has(name) && lastGood !== undefined) found.set(name, lastGood);
    }
    return found;
  }

  /**
   * What the variant puts into a response. Delta says the difference. State of the world says everything of clusters, listeners and of what a
   * client wants all of, since absence is how it says "removed"; of other types what changed, since there removal cannot be said at all.
   */
  #content(next: Plan): { readonly content: Diff; readonly needed: Diff } {
    if (this.#deps.variant === "delta") return { content: next.diff, needed: next.diff };
    if (this.#sendsWholeSet) return { content: diff(EMPTY_SET, next.after.base), needed: next.diff };
    const partial = next.diff.removed.length === 0 ? next.diff : { changed: next.diff.changed, removed: [] };
    return { content: partial, needed: partial };
  }
}

/** https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol, "Grouping Resources into Responses". */
const WHOLE_SET_TYPES: ReadonlySet<string> = new Set([CLUSTER_TYPE, LISTENER_TYPE]);

const NOTHING_SILENT: ReadonlySet<string> = new Set();
const NO_VERSIONS: ReadonlyMap<string, string> = new Map();
const NOTHING_WANTED: Wanted = { wildcard: false, names: NO_NAMES };
