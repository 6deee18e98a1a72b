import { messageOf } from "../base/errors.ts";
import type { ProxyView } from "../model/proxy.ts";
import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import type { DiscoveryStream, DiscoveryStreamEvents } from "../wire/discovery-stream.ts";
import { GRPC_STATUS, type GrpcStatus } from "../wire/grpc-status.ts";
import { shortTypeName } from "../wire/type-urls.ts";
import { Alarm } from "./alarm.ts";
import { Channel, type Outgoing, type Received } from "./channel.ts";
import { Channels, hasRemovals } from "./channels.ts";
import { Identity } from "./identity.ts";
import { noteAnswer } from "./note-answer.ts";
import { isTrusted, Obligations } from "./obligations.ts";
import { removalsBlockedFor, sendBlockedFor } from "./order.ts";
import { type Delay, Outbox } from "./outbox.ts";
import { followWhole } from "./parts.ts";
import type { ResourceProvider } from "./provider.ts";
import { readRequest } from "./read-request.ts";
import { StreamRefusal } from "./refusal.ts";
import type { Ticket } from "./send-budget.ts";
import { type StreamDump, type StreamState, typeDump, typeState } from "./state.ts";
import type { StreamDeps } from "./stream-deps.ts";

/** One client: its types, and its turn to be served. Requests change state only; what follows from them is worked out in `work`. */
export class XdsStream implements DiscoveryStreamEvents {
  readonly id: string;
  readonly connectedAt: number;
  readonly #stream: DiscoveryStream;
  readonly #deps: StreamDeps;
  readonly #channels: Channels;
  readonly #obligations: Obligations;
  readonly #identity: Identity;
  readonly #openedAt: number;
  readonly #outbox: Outbox;
  readonly #urgentTurn = { wake: (): void => this.#deps.enqueue(this, "urgent") };
  readonly #turn = { wake: (): void => this.#deps.enqueue(this, this.#channels.lane) };
  readonly #alarm: Alarm;
  /** The client has answered on this stream: it reads. */
  #known = false;
  #open = true;

  constructor(id: string, stream: DiscoveryStream, deps: StreamDeps) {
    this.id = id;
    this.#stream = stream;
    this.#deps = deps;
    this.#channels = new Channels(deps.providers);
    this.#obligations = new Obligations(deps.names);
    this.#outbox = new Outbox(deps.budget, () => stream.progress());
    this.#identity = new Identity((node, peer) => deps.viewOf(node, peer, stream.variant));
    this.#alarm = new Alarm(deps.clock, () => deps.enqueue(this, this.#channels.lane));
    this.connectedAt = deps.clock.now();
    this.#openedAt = deps.clock.monotonic();
  }

  /** All types are served on it; a proxy may have another beside it that is for one type only. */
  get aggregated(): boolean {
    return this.#stream.typeUrl === undefined;
  }

  get nodeId(): string {
    return this.#identity.node?.id ?? "";
  }

  /** The same for streams that hold the same of the first type, and so most likely of all types. */
  get kin(): unknown {
    const [first] = this.#channels.list;
    return first?.holding.unlike.size === 0 ? first.holding.base : first?.holding.unlike;
  }

  /** Takes a request in. Bytes that are no request end the stream. */
  message(bytes: Uint8Array): void {
    if (!this.#open || this.#isAck(bytes)) return;
    const request = this.#read(bytes);
    if (request === undefined || !this.#knows(request.node)) return;
    if (request.initialVersions.size > 0) this.#stream.begin(); // One that comes back may need nothing, and is told at once that it is served.
    const provider = this.#deps.providers.get(request.typeUrl);
    if (provider === undefined) this.#deps.said(request, this.#stream.peer, this.nodeId);
    if (provider === undefined) return;
    const channel = this.#channel(provider);
    const received = channel.receive(request, isTrusted(provider, this.#deps.providers.values(), this.#channels));
    if ((channel.subscription?.names.names.size ?? 0) > this.#deps.settings.maxNames) this.#tooManyNames();
    if (!this.#open) return;
    this.#follow(channel, received, request.error?.message ?? "");
  }

  ended(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#alarm.stop();
    for (const turn of [this.#turn, this.#urgentTurn]) this.#deps.budget.leave(turn);
    this.#outbox.clear();
    this.#deps.rounds.settled(this);
    this.#deps.ended(this, this.#stream.peer);
  }

  close(status: GrpcStatus, reason: string): void {
    if (!this.#open) return;
    this.#stream.close(status, reason);
    this.ended();
  }

  /** The client does not read: nothing can be said to it, and what is queued for it must go. */
  abort(): void {
    if (!this.#open) return;
    this.#stream.abort();
    this.ended();
  }

  /** Inputs changed: everything has to be looked at again. */
  refresh(): void {
    this.#identity.age();
    this.#channels.makeDirty();
    if (this.#channels.list.length === 0) this.#deps.enqueue(this, this.#channels.lane);
    else this.#continue();
  }

  /** Tells a client that came back and goes on to need nothing that it is served, in so many words. */
  greet(now: number): void {
    if (this.#known || this.#stream.variant === "sotw" || now - this.#openedAt < this.#deps.settings.greetAfterMs) return;
    if (!this.#channels.areSettledInSilence) return;
    this.#channels.greet();
    this.#continue();
  }

  /** Bytes that the network has not taken. */
  get unsentBytes(): number {
    return this.#outbox.bytes;
  }

  /** It has said who it is, and nothing waits for it. */
  get isQuiet(): boolean {
    return this.#outbox.empty && this.#identity.node !== undefined;
  }

  /** How long it has kept others waiting, and how long it has not said who it is. */
  waits(now: number): Delay & { readonly namelessMs: number } {
    return { ...this.#outbox.delay(now), namelessMs: this.#identity.node === undefined ? now - this.#openedAt : 0 };
  }

  /** Sends what is due, type by type: at once where it is one type and all of it is known, as mostly it is; else in steps, pausing where the caller likes. */
  work(urgentOnly: boolean): Iterable<void> | undefined {
    if (this.#identity.node === undefined || !this.#knows(undefined)) return undefined;
    let served = false;
    const isLeft = this.#channels.list.some((channel) => {
      if (!this.#isDue(channel, urgentOnly)) return false;
      const isNow = !served && this.#serveAtOnce(channel);
      served = true;
      return !isNow;
    });
    if (isLeft || (!urgentOnly && this.#channels.haveRemovals)) return this.#steps(urgentOnly);
    this.#endTurn(urgentOnly);
    return undefined;
  }

  *#steps(urgentOnly: boolean): Iterable<void> {
    for (const channel of this.#channels.list) if (this.#isDue(channel, urgentOnly)) yield* this.#serve(channel);
    // Removals wait for types further down the list; those may just have turned out to have nothing to say.
    for (const channel of urgentOnly ? [] : this.#channels.list) {
      if (!hasRemovals(channel)) continue;
      const wait = this.#removalsWait(channel);
      if (wait > 0) this.#alarm.after(wait);
      else yield* this.#serve(channel);
    }
    this.#endTurn(urgentOnly);
  }

  #endTurn(urgentOnly: boolean): void {
    if (!urgentOnly && !this.#channels.waiting) this.#deps.budget.leave(this.#turn);
    this.#settle();
  }

  #isDue(channel: Channel, urgentOnly: boolean): boolean {
    return channel.ready && (!urgentOnly || channel.urgent) && !this.#stands(channel);
  }

  state(): StreamState {
    const types = this.#channels.list.map((channel) => typeState(channel));
    const { variant, peer } = this.#stream;
    return { id: this.id, node: this.nodeId, variant, peer: peer.address, connectedAt: this.connectedAt, view: this.#identity.view, types };
  }

  dump(): StreamDump | undefined {
    const { node, view } = this.#identity;
    if (node === undefined || view === undefined) return undefined;
    return { id: this.id, node, view, types: this.#channels.list.flatMap((channel) => typeDump(channel, view) ?? []) };
  }

  /** What stands for all that the proxy was offered and holds. */
  *receipts(): Iterable<string> {
    const { view } = this.#identity;
    if (view === undefined) return;
    for (const channel of this.#channels.list) {
      const receipted = channel.receipted(view);
      const receipt = receipted && this.#deps.confirmations.receiptOf(receipted);
      if (receipt !== undefined) yield receipt;
    }
  }

  /** Most requests acknowledge the response in flight, word for word as foreseen. */
  #isAck(bytes: Uint8Array): boolean {
    return this.#channels.list.some((channel) => {
      const received = channel.acknowledged(bytes);
      if (received !== undefined) this.#follow(channel, received, "");
      return received !== undefined;
    });
  }

  /** What follows from a request that was taken in. */
  #follow(channel: Channel, received: Received, error: string): void {
    this.#obligations.claim(channel);
    followWhole(this.#channels.list, channel, received);
    this.#known ||= received.answered !== undefined;
    noteAnswer(channel, received, { deps: this.#deps, stream: this, view: this.#identity.view, error });
    this.#continue();
  }

  #read(bytes: Uint8Array): DiscoveryRequest | undefined {
    try {
      const request = readRequest(bytes, this.#stream, this.#deps.lists);
      if (request.names.length <= this.#deps.settings.maxNames) return request;
      this.#tooManyNames();
    } catch (error) {
      this.close(GRPC_STATUS.INVALID_ARGUMENT, `not a discovery request: ${messageOf(error)}`);
    }
    return undefined;
  }

  #tooManyNames(): void {
    this.close(GRPC_STATUS.RESOURCE_EXHAUSTED, `more than ${this.#deps.settings.maxNames} names of one type`);
  }

  /** Whether we know who is calling, as of the latest inputs. One who may not be what it says is turned away. */
  #knows(node: Uint8Array | undefined): boolean {
    if (!this.#open) return false;
    if (this.#identity.isCurrent) return true; // asked for each type at each change
    try {
      this.#identity.introduce(node, this.#deps.settings.maxNodeBytes);
      this.#identity.look(this.#stream.peer);
    } catch (error) {
      if (error instanceof StreamRefusal) this.close(error.status, error.message);
      else this.#failed(error, "who a proxy is cannot be worked out");
    }
    return this.#open && this.#identity.view !== undefined;
  }

  #channel(provider: ResourceProvider): Channel {
    const known = this.#channels.get(provider.typeUrl);
    if (known !== undefined) return known;
    const { names, lastGood, confirmations } = this.#deps;
    const whole = (): Channel | undefined => this.#channels.get(provider.partOf ?? "");
    const channel = new Channel(provider, { variant: this.#stream.variant, names, lastGood, confirmations, whole });
    this.#channels.add(channel);
    return channel;
  }

  /** Asks for turns for what is due; tells the round if nothing is. */
  #continue(): void {
    const urgent = this.#channels.urgentlyDirty;
    const other = this.#channels.dirtyOtherwise;
    if (urgent) this.#deps.enqueue(this, "urgent");
    if (other) this.#deps.enqueue(this, this.#channels.lane);
    if (!urgent && !other) this.#settle();
  }

  /** Whether nothing has to be said of a type to the proxy as it is now: others may have had their turn meanwhile. */
  #stands(channel: Channel): boolean {
    return this.#knows(undefined) && this.#identity.view !== undefined && channel.standsFor(this.#identity.view);
  }

  /** False: it has to be prepared. */
  #serveAtOnce(channel: Channel): boolean {
    const { wanted } = channel;
    const { view } = this.#identity;
    if (wanted === undefined || view === undefined) return false;
    if (this.#mustWait(channel)) return true;
    const startedAt = this.#deps.clock.monotonic();
    try {
      if (channel.provider.isPrepared?.(view, wanted) !== true) return false;
      this.#offer(channel, view, startedAt);
    } catch (error) {
      this.#giveUp(channel, error);
    }
    return true;
  }

  *#serve(channel: Channel): Iterable<void> {
    const { wanted } = channel;
    const { view } = this.#identity;
    if (!this.#open || !channel.ready || wanted === undefined || view === undefined) return;
    if (this.#mustWait(channel)) return;
    const startedAt = this.#deps.clock.monotonic();
    try {
      if (channel.provider.isPrepared?.(view, wanted) !== true) {
        for (const _ of channel.provider.prepare(view, wanted)) {
          yield;
          if (!this.#open || !channel.ready) return;
        }
      }
      if (!this.#isStill(view)) return;
      this.#offer(channel, view, startedAt);
    } catch (error) {
      this.#giveUp(channel, error);
    }
    yield;
  }

  /** Sends what is offered, as far as the client does not hold it. */
  #offer(channel: Channel, view: ProxyView, startedAt: number): void {
    const outgoing = channel.outgoing(view, this.#removalsWait(channel) > 0);
    if (outgoing.plan.removalsLeft) {
      channel.removalsSince ??= startedAt;
      this.#alarm.after(this.#removalsWait(channel));
    }
    if (!outgoing.send && channel.skipped(outgoing)) this.#continue();
    const ticket = outgoing.send ? this.#ticket(channel, outgoing) : undefined;
    if (ticket !== undefined) this.#send(channel, outgoing, { ticket, startedAt });
  }

  #giveUp(channel: Channel, error: unknown): void {
    channel.dirty = false;
    channel.waiting = false;
    this.#failed(error, `${shortTypeName(channel.provider.typeUrl)} cannot be worked out`);
  }

  /**
   * Nothing is worked out before there is room for it, as far as can be told from the last response of the type: while inputs go on changing it would be old
   * before it is sent, and to work out every change for every stream that waits leaves no time to send.
   */
  #mustWait(channel: Channel): boolean {
    const { budget, clock } = this.#deps;
    if (channel.urgent) return false;
    const likely = { bytes: channel.lastBytes, since: clock.monotonic() };
    if (!budget.isWaiting(this.#turn) && budget.admits(likely, this.#known ? "known" : "new", this.#turn)) return false;
    channel.waiting = true;
    return true;
  }

  /** Whether the proxy is still what it was before others had their turn; if not, the next turn begins anew. */
  #isStill(view: ProxyView): boolean {
    if (!this.#knows(undefined)) return false;
    if (this.#identity.view !== view) this.#deps.enqueue(this, this.#channels.lane);
    return this.#identity.view === view;
  }

  /** Leave to send, if it is this type's turn in the stream and the stream's turn in the process. */
  #ticket(channel: Channel, outgoing: Outgoing): Ticket | undefined {
    const { budget, frames, clock } = this.#deps;
    const urgent = channel.urgent;
    channel.waiting = true;
    if (outgoing.plan.diff.changed.length > 0 && this.#sendBlocked(channel)) return undefined;
    const ticket = { bytes: frames.size(outgoing.content), since: clock.monotonic() };
    const lane = urgent ? "urgent" : this.#known ? "known" : "new";
    return budget.take(ticket, lane, urgent ? this.#urgentTurn : this.#turn) ? ticket : undefined;
  }

  #send(channel: Channel, outgoing: Outgoing, { ticket, startedAt }: { readonly ticket: Ticket; readonly startedAt: number }): void {
    const { clock, frames, metrics, rounds } = this.#deps;
    const { typeUrl, companion } = channel.provider;
    const { content, plan, isGreeting } = outgoing;
    const version = channel.versionOf(plan.after.base);
    const frame = frames.frame({ variant: this.#stream.variant, typeUrl, version, content, after: channel.lastSequence });
    channel.sent(outgoing, frame, ticket.since);
    channel.record.sentAt = clock.now();
    rounds.sent(this, typeUrl, plan.diff);
    this.#outbox.add(ticket);
    const { changed, removed } = plan.diff;
    const ms = clock.monotonic() - startedAt;
    metrics.sent({ typeUrl, bytes: frame.size, changed: changed.length, removed: removed.length, isGreeting, ms });
    this.#stream.send(frame.message, () => {
      if (this.#outbox.taken(ticket)) metrics.flushed(typeUrl, clock.monotonic() - ticket.since);
    });
    if (companion === undefined) return;
    const owed = this.#channels.get(companion.typeUrl);
    this.#obligations.owe(companion, plan.diff);
    if (owed !== undefined && this.#obligations.claim(owed)) this.#deps.enqueue(this, owed.urgent ? "urgent" : this.#channels.lane);
  }

  #sendBlocked(channel: Channel): boolean {
    const at = { now: this.#deps.clock.monotonic(), timeoutMs: this.#deps.settings.orderTimeoutMs };
    const wait = sendBlockedFor(channel, this.#channels, at);
    if (wait > 0) this.#alarm.after(wait);
    return wait > 0;
  }

  #removalsWait(channel: Channel): number {
    if (channel.provider.removeAfter === undefined) return 0;
    const at = { now: this.#deps.clock.monotonic(), timeoutMs: this.#deps.settings.removalTimeoutMs };
    const { view } = this.#identity;
    const expected = (typeUrl: string): boolean => view === undefined || this.#deps.providers.get(typeUrl)?.askedBy?.(view) !== false;
    return removalsBlockedFor(channel, this.#channels, { ...at, openedAt: this.#openedAt, expected });
  }

  #settle(): void {
    if (this.#channels.settled) this.#deps.rounds.settled(this);
  }

  #failed(error: unknown, what: string): void {
    this.#deps.metrics.internalError();
    this.#deps.log.error({ node: this.nodeId, reason: messageOf(error) }, what);
  }
}
