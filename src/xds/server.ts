import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { nextTurn, runSliced } from "../base/slice.ts";
import type { ProxyView } from "../model/proxy.ts";
import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import type { DiscoveryStream, DiscoveryStreamEvents, DiscoveryVariant, Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import type { Node } from "../wire/node.ts";
import { createFrames } from "./frames.ts";
import { LastGood } from "./last-good.ts";
import { noMetrics, type XdsMetrics } from "./metrics.ts";
import { createNameSets } from "./name-sets.ts";
import type { ResourceProvider } from "./provider.ts";
import { PushQueue } from "./push-queue.ts";
import { type RoundSummary, Rounds } from "./rounds.ts";
import { SendBudget } from "./send-budget.ts";
import { DEFAULT_XDS_SETTINGS, type XdsSettings } from "./settings.ts";
import type { StreamDump, StreamState } from "./state.ts";
import { type StreamDeps, XdsStream } from "./stream.ts";

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
  /** Cuts a stream (by stream or node id), so that its proxy connects again. */
  disconnect(id: string): boolean;
  /** Ends all streams and takes no more: proxies go to another replica. */
  drain(): void;
  /** Resolves when nothing is left to be worked out; answers of clients are not waited for. */
  idle(): Promise<void>;
}

const WATCH_MS = 1_000;

/** Builds the server. It opens nothing itself. */
export function createXdsServer(options: XdsServerOptions): XdsServer {
  const settings = { ...DEFAULT_XDS_SETTINGS, ...options.settings };
  const metrics = options.metrics ?? noMetrics;
  const { clock, log } = options;
  const streams = new Map<string, XdsStream>();
  const queue = new PushQueue<XdsStream>();
  let pumping: Promise<void> | undefined;
  let draining = false;
  let lastStream = 0;
  let cancelWatch: (() => void) | undefined;

  const pump = async (): Promise<void> => {
    await nextTurn();
    try {
      await runSliced(queue.steps(failed), clock);
    } finally {
      pumping = undefined;
      if (!queue.empty) start();
    }
  };
  const start = (): void => {
    pumping ??= pump();
  };
  const failed = (stream: XdsStream, error: unknown): void => {
    metrics.internalError();
    log.error({ node: stream.nodeId, error: messageOf(error) }, "serving a proxy failed");
    stream.close(GRPC_STATUS.INTERNAL, "internal error");
  };
  const deps: StreamDeps = {
    providers: new Map(options.providers.map((provider) => [provider.typeUrl, provider])),
    viewOf: options.viewOf,
    settings,
    clock,
    log,
    metrics,
    names: createNameSets(),
    frames: createFrames(settings.controlPlane),
    lastGood: new LastGood(),
    budget: new SendBudget({ totalBytes: settings.unsentBytes, windowBytes: settings.windowBytes, slowMs: WATCH_MS }),
    rounds: new Rounds({
      clock,
      timeoutMs: settings.roundTimeoutMs,
      done: (summary) => options.pushed?.(summary),
      converged: metrics.converged,
    }),
    enqueue: (stream, urgent) => {
      queue.add(stream, urgent);
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
    const now = clock.monotonic();
    deps.budget.demote(now);
    deps.frames.age();
    for (const stream of [...streams.values()]) {
      const { stalledMs, unsentMs, namelessMs } = stream.waits(now);
      const stalled = unsentMs > settings.sendTimeoutMs || (deps.budget.contended && stalledMs > settings.stallMs);
      if (namelessMs > settings.firstRequestMs) stream.close(GRPC_STATUS.DEADLINE_EXCEEDED, "no request came");
      if (!stalled) continue;
      metrics.writeTimeout();
      log.warn({ node: stream.nodeId, ms: Math.round(unsentMs) }, "proxy does not read what it is sent; its connection is cut");
      stream.abort();
    }
    if (streams.size > 0) cancelWatch = clock.after(WATCH_MS, watch);
  };
  const find = (id: string): XdsStream | undefined => {
    const ofNode = [...streams.values()].filter((stream) => stream.nodeId === id);
    return streams.get(id) ?? ofNode.find((stream) => stream.aggregated) ?? ofNode[0];
  };

  return {
    accept(stream) {
      lastStream += 1;
      const session = new XdsStream(String(lastStream), stream, deps);
      if (draining) {
        session.close(GRPC_STATUS.UNAVAILABLE, "this control plane is shutting down");
        return session;
      }
      streams.set(session.id, session);
      metrics.streams(streams.size);
      cancelWatch ??= clock.after(WATCH_MS, watch);
      return session;
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
    disconnect(id) {
      const stream = find(id);
      stream?.close(GRPC_STATUS.UNAVAILABLE, "disconnected on request");
      return stream !== undefined;
    },
    drain() {
      draining = true;
      cancelWatch?.();
      for (const stream of [...streams.values()]) stream.close(GRPC_STATUS.UNAVAILABLE, "this control plane is shutting down");
    },
    async idle() {
      while (pumping !== undefined) await pumping;
    },
  };
}
