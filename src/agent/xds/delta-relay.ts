import { BackOff } from "../../base/back-off.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import {
  type DeltaRequestParts,
  type DeltaResponse,
  deltaRequestBytes,
  deltaResponseBytes,
  readDeltaResource,
  readDeltaResponse,
} from "../../wire/delta-frames.ts";
import { readDeltaRequest } from "../../wire/discovery-request.ts";
import type { DiscoveryStream, DiscoveryStreamEvents } from "../../wire/discovery-stream.ts";
import type { ClientCall, GrpcError } from "../../wire/grpc-channel.ts";
import { DELTA_METHOD } from "../../wire/grpc-server.ts";
import { GRPC_STATUS } from "../../wire/grpc-status.ts";
import { shortTypeName } from "../../wire/type-urls.ts";
import type { Connection, Dialer } from "../dialer.ts";
import { sentenceOf } from "../identity/workload-identity.ts";
import type { LastGood } from "./last-good.ts";
import { TypeState } from "./type-state.ts";
import type { AgentSubscription, Uplink } from "./uplink.ts";
import { counted, noteEnd, type XdsCounts } from "./xds-counts.ts";

export interface RelayDeps {
  readonly dialer: Dialer;
  readonly lastGood: LastGood;
  readonly uplink: Uplink;
  /** Types the agent wants for itself. What it has of them outlives a stream. */
  readonly own: ReadonlyMap<string, OwnType>;
  readonly counts: XdsCounts;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of the size of each message. */
  passed(bytes: number): void;
  /** Told when a control plane has taken the stream and when it is lost. */
  connected(address: string | undefined): void;
}

interface Upstream {
  readonly id: number;
  readonly connection: Connection;
  readonly call: ClientCall;
  /** Types of Envoy's that were asked for on it. */
  readonly opened: Set<string>;
  /** The first message carries the node. */
  introduced: boolean;
  /** The control plane has the stream: headers came, or at least a message. */
  taken: boolean;
  answered: boolean;
}

/** A type that the agent wants for itself, and what it has of it. */
export interface OwnType {
  readonly subscription: AgentSubscription;
  readonly held: Map<string, string>;
}

/** How long a control plane may stay silent before what is on disk is served. */
const SILENCE_MS = 3_000;

/**
 * One Envoy's configuration stream. Towards the control plane it is one stream at a time, replaced when it breaks; Envoy's own stream stays open
 * over that. Messages pass as they are: only names, versions and nonces are looked at. What Envoy accepts is kept, and while no control plane
 * answers it is what Envoy is served.
 */
export class DeltaRelay implements DiscoveryStreamEvents {
  readonly #stream: Pick<DiscoveryStream, "send">;
  readonly #deps: RelayDeps;
  readonly #types = new Map<string, TypeState>();
  readonly #backOff: BackOff = new BackOff({ firstMs: 250, mostMs: 15_000 });
  readonly #abort = new AbortController();
  #node: Uint8Array | undefined;
  #upstream: Upstream | undefined;
  #streams = 0;
  #sequence = 0;
  /** No control plane answers: requests are answered from disk. */
  #offline = false;
  /** Responses that are being changed, in their order. */
  #passing: Promise<void> = Promise.resolve();
  #running: Promise<void> | undefined;

  constructor(stream: Pick<DiscoveryStream, "send">, deps: RelayDeps) {
    this.#stream = stream;
    this.#deps = deps;
  }

  /** A request of Envoy's. */
  message(bytes: Uint8Array): void {
    const request = readDeltaRequest(bytes);
    this.#deps.counts.requests += 1;
    this.#node ??= request.node;
    const type = this.#types.get(request.typeUrl) ?? new TypeState(request.typeUrl);
    this.#types.set(request.typeUrl, type);
    const answered = type.answered(request);
    if (answered !== undefined && request.error === undefined) this.#deps.lastGood.note(type.typeUrl, answered.changed, answered.removed);
    if (answered !== undefined && request.error !== undefined)
      this.#deps.log.warn({ type: shortTypeName(type.typeUrl), reason: request.error.message }, "Envoy rejected configuration");
    type.subscribe(request);
    this.#running ??= this.#run();
    const upstream = this.#upstream;
    if (upstream !== undefined)
      this.#forward(upstream, type, { bytes, answersIt: answered === undefined || answered.stream === upstream.id });
    if (this.#offline && request.names.length + (answered === undefined ? 1 : 0) > 0) void this.#serveFromDisk(type);
  }

  /** Asks for what the agent wants for itself, without waiting for an Envoy: there is none. */
  standAlone(node: Uint8Array): void {
    this.#node = node;
    this.#running ??= this.#run();
  }

  ended(): void {
    noteEnd(this.#deps.counts.envoy, undefined);
    this.#abort.abort();
    this.#upstream?.call.cancel();
    this.#upstream?.connection.channel.close();
  }

  /** Says again what the agent has to say. */
  announce(): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    for (const announcement of this.#deps.uplink.announcements) {
      const parts = announcement();
      if (parts !== undefined) this.#say(upstream, parts);
    }
  }

  /** Says something of the agent's, where a control plane hears it. */
  say(parts: Omit<DeltaRequestParts, "node">): void {
    if (this.#upstream !== undefined) this.#say(this.#upstream, parts);
  }

  #say(upstream: Upstream, parts: DeltaRequestParts): void {
    upstream.call.send(deltaRequestBytes(upstream.introduced ? parts : { ...parts, node: this.#node }));
    upstream.introduced = true;
  }

  #forward(upstream: Upstream, type: TypeState, message: { readonly bytes: Uint8Array; readonly answersIt: boolean }): void {
    if (!upstream.opened.has(type.typeUrl)) this.#open(upstream, type);
    else if (message.answersIt) upstream.call.send(message.bytes);
    else {
      // An answer to a response of another stream, or to one from disk, means nothing here; what it subscribes to does.
      const { names, unsubscribe } = readDeltaRequest(message.bytes);
      if (names.length + unsubscribe.length > 0) this.#say(upstream, { typeUrl: type.typeUrl, subscribe: names, unsubscribe });
    }
  }

  #open(upstream: Upstream, type: TypeState): void {
    const opening = type.opening();
    if (opening === undefined) return;
    this.#say(upstream, opening);
    upstream.opened.add(type.typeUrl);
  }

  /** Keeps a stream to some control plane until Envoy's ends. */
  async #run(): Promise<void> {
    const { signal } = this.#abort;
    let told = "";
    while (!signal.aborted) {
      try {
        await this.#session(signal);
      } catch (error) {
        if (signal.aborted) return;
        const sentence = sentenceOf(error);
        if (sentence !== told) this.#deps.log.warn(`no configuration from the control plane: ${sentence}; trying again`);
        told = sentence;
      }
      this.#deps.connected(undefined);
      this.#goOffline();
      await this.#deps.clock.sleep(this.#backOff.next(), signal).catch(() => {});
    }
  }

  /** One upstream stream from its opening to its end; rejects where it ends otherwise than by itself. */
  async #session(signal: AbortSignal): Promise<void> {
    const { dialer, clock, counts } = this.#deps;
    const connection = await counted(counts, dialer.dial());
    const { promise: over, resolve, reject } = Promise.withResolvers<void>();
    if (signal.aborted) return connection.channel.close();
    this.#streams += 1;
    const id = this.#streams;
    const events = {
      taken: (): void => this.#isTaken(id),
      message: (bytes: Buffer): void => this.#take(id, bytes),
      ended: (error: GrpcError | undefined): void => {
        noteEnd(counts.istiod, error);
        if (error === undefined) resolve();
        else reject(error);
      },
    };
    const call = connection.channel.open(DELTA_METHOD, connection.headers, events);
    const upstream: Upstream = { id, connection, call, opened: new Set(), introduced: false, taken: false, answered: false };
    this.#upstream = upstream;
    for (const type of this.#types.values()) this.#open(upstream, type);
    for (const [typeUrl, { subscription, held }] of this.#deps.own)
      if (subscription.onDemand !== true || subscription.names.length > 0)
        this.#say(upstream, { typeUrl, subscribe: subscription.names, initialVersions: held });
    this.announce();
    const stopWaiting = clock.after(SILENCE_MS, () => {
      if (!upstream.answered && !(upstream.taken && this.#lacksNothing())) this.#goOffline();
    });
    try {
      await over;
    } catch (error) {
      dialer.avoid(connection.address);
      throw error;
    } finally {
      stopWaiting();
      this.#upstream = undefined;
      connection.channel.close();
    }
  }

  /** One who came back with all it needs may be told nothing for long: it is served by who has the stream, not by who says something on it. */
  #isTaken(id: number): void {
    const upstream = this.#upstream;
    if (upstream?.id !== id || upstream.taken) return;
    upstream.taken = true;
    this.#offline = false;
    this.#backOff.reset();
    this.#deps.connected(upstream.connection.address);
  }

  /** Of each type that Envoy asked for it has something: an answer need not come. */
  #lacksNothing(): boolean {
    return this.#types.values().every(({ held }) => held.size > 0);
  }

  #take(id: number, bytes: Buffer): void {
    const upstream = this.#upstream;
    if (upstream?.id !== id) return;
    this.#isTaken(id);
    const response = readDeltaResponse(bytes);
    this.#deps.passed(bytes.length);
    this.#deps.counts.responses += 1;
    upstream.answered = true;
    this.#offline = false;
    const own = this.#deps.own.get(response.typeUrl);
    const filter = this.#deps.uplink.filters.get(response.typeUrl);
    if (own !== undefined) this.#takeOwn(upstream, own, response);
    else if (filter === undefined) this.#pass(id, response, bytes);
    else {
      const later = (resources: readonly Uint8Array[]): void => this.#sendOwn(response.typeUrl, resources);
      this.#passing = this.#passing.then(async () => this.#passFiltered(id, await filter(response, bytes, later).catch(() => bytes)));
    }
  }

  /** What was changed on the way is what Envoy has, and so what is kept. */
  #passFiltered(id: number, bytes: Uint8Array): void {
    this.#pass(id, readDeltaResponse(bytes), bytes);
  }

  #pass(id: number, response: DeltaResponse, bytes: Uint8Array): void {
    const type = this.#types.get(response.typeUrl);
    if (type === undefined || this.#abort.signal.aborted) return;
    type.sent(response, id);
    this.#stream.send([bytes], () => {});
  }

  #takeOwn(upstream: Upstream, { subscription, held }: OwnType, response: DeltaResponse): void {
    const { typeUrl, nonce } = response;
    try {
      subscription.taken(response);
      for (const { name, version } of response.resources) held.set(name, version);
      for (const name of response.removed) held.delete(name);
      this.#say(upstream, { typeUrl, nonce });
    } catch (error) {
      this.#say(upstream, { typeUrl, nonce, error: { code: GRPC_STATUS.INVALID_ARGUMENT, message: sentenceOf(error) } });
    }
  }

  #goOffline(): void {
    if (this.#offline) return;
    this.#offline = true;
    for (const type of this.#types.values()) void this.#serveFromDisk(type);
  }

  async #serveFromDisk(type: TypeState): Promise<void> {
    const { lastGood, log } = this.#deps;
    const kept = await lastGood.read(type.typeUrl);
    // Envoy does not get beyond a type of which there is nothing before it is told so.
    const isNothing = kept.size === 0 && (await lastGood.knows(type.typeUrl));
    if (!this.#offline || this.#abort.signal.aborted) return;
    const resources = type.wanted(kept);
    if (resources.length === 0 && !(isNothing && type.waits)) return;
    this.#sendOwn(
      type.typeUrl,
      resources.map(({ bytes }) => bytes),
    );
    log.info({ type: shortTypeName(type.typeUrl), resources: resources.length }, "served from disk, no control plane answers");
  }

  /** Sends what no control plane sent just now; answers to it stay here. */
  #sendOwn(typeUrl: string, resources: readonly Uint8Array[]): void {
    const type = this.#types.get(typeUrl);
    if (type === undefined || this.#abort.signal.aborted) return;
    this.#sequence += 1;
    const response = { typeUrl, nonce: `kept-${this.#sequence}`, resources: resources.map(readDeltaResource), removed: [] };
    type.sent(response, 0);
    this.#stream.send([deltaResponseBytes({ ...response, resources })], () => {});
  }
}
