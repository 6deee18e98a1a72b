import { createAllowance } from "../base/allowance.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ProxyView } from "../model/proxy.ts";
import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import type { DiscoveryStream, DiscoveryStreamEvents, DiscoveryVariant, Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import type { Node } from "../wire/node.ts";
import { sharedLists } from "../wire/request-lists.ts";
import { Admission, type Door } from "./admission.ts";
import { createFrames } from "./frames.ts";
import { LastGood } from "./last-good.ts";
import { noMetrics, type PushCause, type XdsMetrics } from "./metrics.ts";
import { createNameSets, type NameSets } from "./name-sets.ts";
import type { Pressure } from "./pressure.ts";
import type { ResourceProvider } from "./provider.ts";
import { createPump, type Pump } from "./pump.ts";
import { PushQueue } from "./push-queue.ts";
import { Confirmations, type KeptReceipts } from "./receipts.ts";
import { type RoundSummary, Rounds } from "./rounds.ts";
import { SendBudget } from "./send-budget.ts";
import { DEFAULT_XDS_SETTINGS, type XdsSettings } from "./settings.ts";
import { cutIdle, shedSlowest } from "./slow-streams.ts";
import type { StreamDump, StreamState } from "./state.ts";
import { XdsStream } from "./stream.ts";
import type { StreamDeps } from "./stream-deps.ts";
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
  /** Sets of names that are asked for; given where others ask providers too, who know a set by its number. */
  readonly names?: NameSets;
  /** What proxies were offered before a restart. */
  readonly receipts?: KeptReceipts;
  /** A proxy has acknowledged all it was sent, or is gone. Called often: to be noted and looked into later. */
  settled?(): void;
  /** Called once for each push, when the last proxy has acknowledged. */
  pushed?(summary: RoundSummary): void;
}

/** Takes in a stream that was let in: as a proxy's, by `asProxy`, or as something else. */
export type OpenStream = (stream: DiscoveryStream, asProxy: () => DiscoveryStreamEvents) => DiscoveryStreamEvents;

/** The discovery server: names and versions, not meaning. */
export interface XdsServer {
  /** Serves a stream; given to the gRPC server. Where `open` is given it decides, when the stream is let in, whether it is a proxy's. */
  accept(stream: DiscoveryStream, open?: OpenStream): DiscoveryStreamEvents;
  /** Inputs were committed: every stream is sent what differs from what it holds. `reason` goes into the summary; it is counted by its cause. Gives the number of the push. */
  push(reason: string, cause?: PushCause): number;
  state(): readonly StreamState[];
  /** Connected streams, and the last push of which each has acknowledged all it was due. */
  progress(): readonly StreamProgress[];
  /** Ids of the proxies that are connected. */
  nodes(): readonly string[];
  /** What the proxy on a stream holds and should hold. Takes a stream id or a node id. */
  dump(id: string): StreamDump | undefined;
  load(): ServerLoad;
  /** Receipts of what each proxy was offered and holds, in steps; those of proxies that are being served are left out. */
  receipts(): Iterable<string | undefined>;
  /** Says how short memory is. Called again and again while it is: each time something more is let go of. */
  relieve(pressure: Pressure): void;
  /** Cuts a stream (by stream or node id), so that its proxy connects again. */
  disconnect(id: string): boolean;
  /** Ends all streams and takes no more: proxies go to another replica. */
  drain(): void;
  /** Resolves when nothing is left to be worked out; answers of clients are not waited for. */
  idle(): Promise<void>;
}

/** How far a stream is. One that has not been brought up to date since it came is not `inSync` of some type. */
export interface StreamProgress {
  readonly state: StreamState;
  readonly upTo: number;
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
/** A bad edit may be refused by thousands of proxies at once; who refuses whatever comes, and asks again, is not to fill the disk. */
const REJECTION_LINES = { each: { burst: 5_000, perSecond: 5 }, all: { burst: 20_000, perSecond: 50 } } as const;
const GOODBYE = "this control plane is shutting down";

/** What is behind the face of a server. */
interface Works {
  readonly streams: Map<string, XdsStream>;
  readonly deps: StreamDeps;
  readonly admission: Admission;
  readonly budget: SendBudget;
  readonly pump: Pump;
}

/** Builds the server. It opens nothing itself. */
export function createXdsServer(options: XdsServerOptions): XdsServer {
  const works = createWorks(options);
  const { streams, deps, admission, budget, pump } = works;
  const { begin, stop } = createSessions(works);
  let draining = false;
  return {
    accept(stream, open = (_, asProxy) => asProxy()) {
      const entrant = new WaitingStream(stream, admission, (one) => open(one, () => begin(one)));
      if (draining) entrant.turnAway(GRPC_STATUS.UNAVAILABLE, GOODBYE);
      else if (!entrant.enter()) deps.metrics.turnedAway();
      return entrant;
    },
    push(reason, cause = "global") {
      deps.metrics.triggered(cause);
      const push = deps.rounds.begin(reason, streams.values());
      refreshAll(streams);
      return push;
    },
    state: () => [...streams.values()].map((stream) => stream.state()),
    progress: () => [...streams.values()].map((stream) => ({ state: stream.state(), upTo: deps.rounds.upTo(stream) })),
    nodes: () => [...streams.values()].map((stream) => stream.nodeId),
    dump: (id) => find(streams, id)?.dump(),
    *receipts() {
      for (const stream of streams.values()) {
        yield;
        yield* stream.receipts();
      }
    },
    load: () => ({ waiting: admission.waiting, unsentBytes: budget.used }),
    relieve: (pressure) => relieve(works, pressure),
    disconnect(id) {
      const stream = find(streams, id);
      stream?.close(GRPC_STATUS.UNAVAILABLE, "disconnected on request");
      return stream !== undefined;
    },
    drain() {
      draining = true;
      stop();
      admission.stop(GRPC_STATUS.UNAVAILABLE, GOODBYE);
      for (const stream of [...streams.values()]) stream.close(GRPC_STATUS.UNAVAILABLE, GOODBYE);
    },
    idle: pump.idle,
  };
}

function createWorks(options: XdsServerOptions): Works {
  const { clock, log, metrics = noMetrics } = options;
  const settings = { ...DEFAULT_XDS_SETTINGS, ...options.settings };
  const streams = new Map<string, XdsStream>();
  const failed = (stream: XdsStream, error: unknown): void => {
    metrics.internalError();
    log.error({ node: stream.nodeId, reason: messageOf(error) }, "serving a proxy failed");
    stream.close(GRPC_STATUS.INTERNAL, "internal error");
  };
  const queue = new PushQueue<XdsStream>({ clock, failed });
  const budget = new SendBudget({ totalBytes: settings.unsentBytes, windowBytes: settings.windowBytes, slowMs: WATCH_MS });
  const admission = new Admission({
    clock,
    newcomers: () => queue.newcomers + budget.newcomers,
    limits: { mostNewcomers: settings.maxNewcomers, mostWaiting: settings.maxWaiting, perSecond: settings.admittedPerSecond },
  });
  const pump = createPump({ clock, queue, advanced: () => admission.advance(), slice: metrics.slice });
  const deps: StreamDeps = {
    ...sharedByStreams(options, settings),
    budget,
    enqueue(stream, lane) {
      options.receipts?.stirred();
      queue.add(stream, lane);
      pump.start();
    },
    ended(stream, peer) {
      options.receipts?.stirred();
      options.left?.(peer);
      const { view } = stream.state();
      if (view !== undefined) deps.lastGood.left(view);
      streams.delete(stream.id);
      queue.delete(stream);
      metrics.streams(streams.size);
      metrics.left(stream.nodeId);
    },
  };
  return { streams, deps, admission, budget, pump };
}

function sharedByStreams(options: XdsServerOptions, settings: XdsSettings): Omit<StreamDeps, "budget" | "enqueue" | "ended"> {
  const { clock, log, metrics = noMetrics } = options;
  return {
    providers: new Map(options.providers.map((provider) => [provider.typeUrl, provider])),
    viewOf: options.viewOf,
    settings,
    clock,
    log,
    metrics,
    names: options.names ?? createNameSets(),
    lists: sharedLists(),
    frames: createFrames(settings.controlPlane),
    lastGood: new LastGood(clock),
    confirmations: new Confirmations(clock, options.receipts, metrics.confirmed),
    rounds: new Rounds({
      clock,
      timeoutMs: settings.roundTimeoutMs,
      done: (summary) => options.pushed?.(summary),
      converged: metrics.converged,
      settled: () => options.settled?.(),
    }),
    rejectionLines: createAllowance({ clock, ...REJECTION_LINES }),
    said(request, peer, node) {
      const take = options.reports?.[request.typeUrl];
      if (take !== undefined) take(peer, request);
      else log.debug({ node, type: request.typeUrl.slice(0, 200) }, "request for a type that is not served");
    },
  };
}

/** Takes streams in that were admitted, and watches over them while there are any. */
function createSessions({ streams, deps }: Works): { begin(stream: DiscoveryStream): DiscoveryStreamEvents; stop(): void } {
  const { clock, metrics } = deps;
  let lastStream = 0;
  let cancelWatch: (() => void) | undefined;
  /** Cuts those who do not read while others wait for room, and those who never say who they are. */
  const watch = (): void => {
    cancelWatch = undefined;
    deps.budget.demote(clock.monotonic());
    deps.frames.age();
    deps.lastGood.age();
    cutIdle([...streams.values()], deps);
    if (deps.confirmations.ends()) refreshAll(streams);
    for (const stream of streams.values()) stream.greet(clock.monotonic());
    if (streams.size > 0) cancelWatch = clock.after(WATCH_MS, watch);
  };
  return {
    begin(stream) {
      lastStream += 1;
      const session = new XdsStream(String(lastStream), stream, deps);
      streams.set(session.id, session);
      metrics.streams(streams.size);
      cancelWatch ??= clock.after(WATCH_MS, watch);
      return session;
    },
    stop: () => cancelWatch?.(),
  };
}

function relieve({ admission, budget, deps, streams }: Works, pressure: Pressure): void {
  admission.door = DOORS[pressure];
  budget.scale = pressure === "none" ? 1 : TIGHT_SCALE;
  if (pressure === "none") return;
  deps.frames.forget();
  deps.lastGood.forget();
  if (pressure === "critical") shedSlowest([...streams.values()], deps);
}

/** One after the other those that are sent the same, so that what they are sent need not be kept for long. */
function refreshAll(streams: ReadonlyMap<string, XdsStream>): void {
  for (const kin of Map.groupBy(streams.values(), (stream) => stream.kin).values()) for (const stream of kin) stream.refresh();
}

/** By stream or node id. */
function find(streams: ReadonlyMap<string, XdsStream>, id: string): XdsStream | undefined {
  const ofNode = [...streams.values()].filter((stream) => stream.nodeId === id);
  return streams.get(id) ?? ofNode.find((stream) => stream.aggregated) ?? ofNode[0];
}
