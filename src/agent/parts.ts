import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { DeltaRequestParts } from "../wire/delta-frames.ts";
import type { AgentConfig } from "./agent-config.ts";
import { dnsProxy } from "./dns/dns-part.ts";
import { drainPage } from "./drain-part.ts";
import { healthReports } from "./health/health-part.ts";
import type { WorkloadIdentity } from "./identity/workload-identity.ts";
import type { NodeIdentity } from "./node-identity.ts";
import type { AgentMetric } from "./status/agent-metrics.ts";
import { statusPages } from "./status/status-part.ts";
import type { StatusRoute } from "./status-server.ts";
import { trustAnchors } from "./trust-anchors.ts";
import { wasmModules } from "./wasm/wasm-part.ts";
import type { AgentSubscription, Announcement, ResponseFilter } from "./xds/uplink.ts";

/** What a part of the agent may use, and where it adds what it has to offer. It adds before Envoy is started. */
export interface AgentContext {
  readonly config: AgentConfig;
  readonly node: NodeIdentity;
  readonly clock: Clock;
  readonly log: Log;
  readonly identity: WorkloadIdentity;
  /** Types the agent wants from the control plane for itself (names for DNS, for example). */
  readonly subscriptions: AgentSubscription[];
  /** What it tells the control plane (its health, for example); `announce` says it again. */
  readonly announcements: Announcement[];
  announce(): void;
  /** Says something to the control plane now, where one hears it. */
  say(request: Omit<DeltaRequestParts, "node">): void;
  /** Changes to resources on their way to Envoy, by type (modules that were fetched, for example). */
  readonly filters: Map<string, ResponseFilter>;
  /** Pages of port 15020. */
  readonly routes: StatusRoute[];
  /** Reasons for not being ready, each asked at every probe; undefined means ready. */
  readonly checks: (() => string | undefined | Promise<string | undefined>)[];
  /** What it tells about itself on 15020. */
  readonly metrics: AgentMetric[];
  /** Text of a page of Envoy's admin interface. */
  admin(path: string): Promise<string>;
  /** There is nobody left to wait for: the end, when it comes, is without draining. */
  endAtOnce(): void;
  /** Aborted when draining begins: the agent has been told to end. */
  readonly ending: AbortSignal;
  /** Ends when the agent does. */
  readonly signal: AbortSignal;
}

/** A part of the agent: starts, adds itself to the context, and stops with its signal. */
export type AgentPart = (context: AgentContext) => void | Promise<void>;

/** All parts besides certificates, configuration and Envoy itself, in the order in which they start. */
export const PARTS: readonly AgentPart[] = [trustAnchors, dnsProxy, statusPages, healthReports, wasmModules, drainPage];
