import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { nextTurn, runSliced } from "../base/slice.ts";
import type { ProxyView } from "../model/proxy.ts";
import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import type { DiscoveryStream, DiscoveryStreamEvents, DiscoveryVariant, Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import type { Node } from "../wire/node.ts";
import { sharedLists } from "../wire/request-lists.ts";
import { Admission, type Door } from "./admission.ts";
import { createFrames } from "./frames.ts";
import { LastGood } from "./last-good.ts";
import { noMetrics, type XdsMetrics } from "./metrics.ts";
import { createNameSets } from "./name-sets.ts";
import type { Pressure } from "./pressure.ts";
import type { ResourceProvider } from "./provider.ts";
import { PushQueue } from "./push-queue.ts";
import { type RoundSummary, Rounds } from "./rounds.ts";
import { SendBudget } from "./send-budget.ts";
import { DEFAULT_XDS_SETTINGS, type XdsSettings } from "./settings.ts";
import { cutIdle, shedSlowest } from "./slow-streams.ts";
import type { StreamDump, StreamState } from "./state.ts";
import { type StreamDeps, XdsStream } from "./stream.ts";
import { WaitingStream } from "./waiting-stream.ts";

export interface XdsServerOptions {
  /** In the order in which types are sent: what is referred to stands before what refers to it. */
  readonly providers: readonly ResourceProvider[];
  /** Who a proxy is. Asked again at each push; throws `StreamRefusal` to turn a caller away. */
  viewOf(node: Node, peer: Peer, variant: DiscoveryVariant): ProxyView;
  /** Types of which proxies tell and nothing is served, by type URL. */
  readonly reports?: Readonly<Record<string, (peer: Peer, request: DiscoveryRequest) => void>>;
  /** A stream ended; it may never have said who it is. */
  left?(peer: Peer): void;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: XdsMetrics;
  readonly settings?: Partial<XdsSettings>;
  /** Called once for each push, when the last proxy has acknowledged. */
  pushed?(summary: RoundSummary): void;
}

/** The discovery server: names and versions, not meaning. */
export interface XdsServer {
  /** Serves a stream; given to the gRPC server. */
  accept(stream: DiscoveryStream): DiscoveryStreamEvents;
  /** Inputs were committed: every stream is sent what differs from what it holds. `reason` goes into the summary. */
  push(reason: string): void;
  state(): readonly StreamState[];
  /** Ids of the proxies that are connected. */
  nodes(): readonly string[];
  /** What the proxy on a stream holds and should hold. Takes a stream id or a node id. */
  dump(id: string): StreamDump | undefined;
  load(): ServerLoad;
  /** Says how short memory is. Called again and again while it is: each time something more is let go of. */
  relieve(pressure: Pressure): void;
  /** Cuts a stream (by stream or node id), so that its proxy connects again. */
  disconnect(id: string): boolean;
  /** Ends all streams and takes no more: proxies go to another replica. */
  drain(): void;
  /** Resolves when nothing is left to be worked out; answers of clients are not waited for. */
  idle(): Promise<void>;
}

/** What is in hand. */
export interface ServerLoad {
  /** Streams that wait to be let in. */
  readonly waiting: number;
  /** Bytes handed to the network and not yet taken by it. */
  readonly unsentBytes: number;
}

const WATCH_MS = 1_000;
/** What is left of the budget of unsent bytes when memory is short. */
const TIGHT_SCALE = 0.25;
const DOORS = { none: "open", tight: "ajar", critical: "shut" } as const satisfies Record<Pressure, Door>;
const GOODBYE = "this control plane is shutting down";

/** Builds the server. It opens nothing itself. */
export function createXdsServer(options: XdsServerOptions): XdsServer {
  const settings = { ...DEFAULT_XDS_SETTINGS, ...options.settings };
  const metrics = options.metrics ?? noMetrics;
  const { clock, log } = options;
  const streams = new Map<string, XdsStream>();
  let pumping: Promise<void> | undefined;
  let draining = false;
  let lastStream = 0;
  let cancelWatch: (() => void) | undefined;

  const pump = async (): Promise<void> => {
    await nextTurn();
    try {
      await runSliced(served(), clock, { measured: metrics.slice });
    } finally {
      pumping = undefined;
      admission.advance();
      if (!queue.empty) start();
    }
  };
  /** Whenever somebody was served, there may be room for another. */
  function* served(): Iterable<void> {
    for (const _ of queue.steps()) {
      admission.advance();
      yield;
    }
  }
  const start = (): void => {
    pumping ??= pump();
  };
  const failed = (stream: XdsStream, error: unknown): void => {
    metrics.internalError();
    log.error({ node: stream.nodeId, error: messageOf(error) }, "serving a proxy failed");
    stream.close(GRPC_STATUS.INTERNAL, "internal error");
  };
  const queue = new PushQueue<XdsStream>({ clock, failed });
  const budget = new SendBudget({ totalBytes: settings.unsentBytes, windowBytes: settings.windowBytes, slowMs: WATCH_MS });
  const admission = new Admission({
    clock,
    newcomers: () => queue.newcomers + budget.newcomers,
    limits: { mostNewcomers: settings.maxNewcomers, mostWaiting: settings.maxWaiting, perSecond: settings.admittedPerSecond },
  });
  const deps: StreamDeps = {
    providers: new Map(options.providers.map((provider) => [provider.typeUrl, provider])),
    viewOf: options.viewOf,
    settings,
    clock,
    log,
    metrics,
    names: createNameSets(),
    lists: sharedLists(),
    frames: createFrames(settings.controlPlane),
    lastGood: new LastGood(),
    budget,
    rounds: new Rounds({
      clock,
      timeoutMs: settings.roundTimeoutMs,
      done: (summary) => options.pushed?.(summary),
      converged: metrics.converged,
    }),
    enqueue: (stream, lane) => {
      queue.add(stream, lane);
      start();
    },
    said: (request, peer, node) => {
      const take = options.reports?.[request.typeUrl];
      if (take !== undefined) take(peer, request);
      else log.debug({ node, type: request.typeUrl.slice(0, 200) }, "request for a type that is not served");
    },
    ended: (stream, peer) => {
      options.left?.(peer);
      streams.delete(stream.id);
      queue.delete(stream);
      metrics.streams(streams.size);
    },
  };
  /** Cuts those who do not read while others wait for room, and those who never say who they are. Runs while there are streams. */
  const watch = (): void => {
    cancelWatch = undefined;
    deps.budget.demote(clock.monotonic());
    deps.frames.age();
    cutIdle([...streams.values()], deps);
    if (streams.size > 0) cancelWatch = clock.after(WATCH_MS, watch);
  };
  const begin = (stream: DiscoveryStream): DiscoveryStreamEvents => {
    lastStream += 1;
    const session = new XdsStream(String(lastStream), stream, deps);
    streams.set(session.id, session);
    metrics.streams(streams.size);
    cancelWatch ??= clock.after(WATCH_MS, watch);
    return session;
  };
  const find = (id: string): XdsStream | undefined => {
    const ofNode = [...streams.values()].filter((stream) => stream.nodeId === id);
    return streams.get(id) ?? ofNode.find((stream) => stream.aggregated) ?? ofNode[0];
  };

  return {
    accept(stream) {
      const entrant = new WaitingStream(stream, admission, begin);
      if (draining) entrant.turnAway(GRPC_STATUS.UNAVAILABLE, GOODBYE);
      else if (!entrant.enter()) metrics.turnedAway();
      return entrant;
    },
    push(reason) {
      metrics.triggered(reason);
      deps.rounds.begin(reason, streams.values());
      // One after the other those that are sent the same, so that what they are sent need not be kept for long.
      for (const kin of Map.groupBy(streams.values(), (stream) => stream.kin).values()) for (const stream of kin) stream.refresh();
    },
    state: () => [...streams.values()].map((stream) => stream.state()),
    nodes: () => [...streams.values()].map((stream) => stream.nodeId),
    dump: (id) => find(id)?.dump(),
    load: () => ({ waiting: admission.waiting, unsentBytes: budget.used }),
    relieve(pressure) {
      admission.door = DOORS[pressure];
      budget.scale = pressure === "none" ? 1 : TIGHT_SCALE;
      if (pressure === "none") return;
      // Twice: what was used since the last call is forgotten too.
      deps.frames.age();
      deps.frames.age();
      if (pressure === "critical") shedSlowest([...streams.values()], deps);
    },
    disconnect(id) {
      const stream = find(id);
      stream?.close(GRPC_STATUS.UNAVAILABLE, "disconnected on request");
      return stream !== undefined;
    },
    drain() {
      draining = true;
      cancelWatch?.();
      admission.stop(GRPC_STATUS.UNAVAILABLE, GOODBYE);
      for (const stream of [...streams.values()]) stream.close(GRPC_STATUS.UNAVAILABLE, GOODBYE);
    },
    async idle() {
      while (pumping !== undefined) await pumping;
    },
  };
}
