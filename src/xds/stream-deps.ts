import type { Allowance } from "../base/allowance.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ProxyView } from "../model/proxy.ts";
import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import type { DiscoveryVariant, Peer } from "../wire/discovery-stream.ts";
import type { Node } from "../wire/node.ts";
import type { RequestLists } from "../wire/request-lists.ts";
import type { Frames } from "./frames.ts";
import type { LastGood } from "./last-good.ts";
import type { XdsMetrics } from "./metrics.ts";
import type { NameSets } from "./name-sets.ts";
import type { ResourceProvider } from "./provider.ts";
import type { TurnLane } from "./push-queue.ts";
import type { Confirmations } from "./receipts.ts";
import type { Rounds } from "./rounds.ts";
import type { SendBudget } from "./send-budget.ts";
import type { XdsSettings } from "./settings.ts";
import type { XdsStream } from "./stream.ts";

/** What all streams share. */
export interface StreamDeps {
  /** In the order in which types are sent. */
  readonly providers: ReadonlyMap<string, ResourceProvider>;
  viewOf(node: Node, peer: Peer, variant: DiscoveryVariant): ProxyView;
  readonly settings: XdsSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: XdsMetrics;
  readonly names: NameSets;
  readonly lists: RequestLists;
  readonly frames: Frames;
  readonly lastGood: LastGood;
  readonly confirmations: Confirmations;
  readonly budget: SendBudget;
  readonly rounds: Rounds;
  /** Whose rejections are still written into the log, by namespace. */
  readonly rejectionLines: Allowance;
  /** Asks for a turn. */
  enqueue(stream: XdsStream, lane: TurnLane): void;
  ended(stream: XdsStream, peer: Peer): void;
  /** A request of a type that has no resources. */
  said(request: DiscoveryRequest, peer: Peer, nodeId: string): void;
}
