import { readFile, rm, writeFile } from "node:fs/promises";
import { BackOff } from "../base/back-off.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { AgentSettings } from "../settings/agent-table.ts";
import { askAdmin } from "./admin-client.ts";
import type { EnvoyProcess } from "./envoy-process.ts";

export interface SupervisorOptions {
  /** Starts an Envoy; may reject when the end comes before that. */
  start(): Promise<EnvoyProcess>;
  readonly adminPort: number;
  /** File that remembers the running one over the end of this process. */
  readonly pidFile: string;
  readonly drain: DrainPlan;
  readonly clock: Clock;
  readonly log: Log;
}

/** How an Envoy is ended. */
export interface DrainPlan {
  /** Listeners for clients only: what the application still sends goes through. */
  readonly inboundOnly: boolean;
  /** How long it is drained. */
  readonly forMs: number;
  /** End as soon as no connection is left, instead; not before the least time. */
  readonly untilIdle: { readonly leastMs: number; readonly ignoredPorts: readonly number[] } | undefined;
}

/** Keeps one Envoy running. */
export interface EnvoySupervisor {
  /** Runs until the signal ends it, then drains it. Resolves when it is gone. */
  run(stop: AbortSignal, now: AbortSignal): Promise<void>;
  /** Whether the one that it started has its first configuration. */
  ready(): Promise<boolean>;
}

/** One that ran so long is not in a crash loop. */
const STEADY_MS = 60_000;
const LOOK_MS = 500;
/** Waiting for idle connections ends some time. */
const LONGEST_DRAIN_MS = 600_000;

/**
 * Starts an Envoy again whenever it ends, later each time it crashes or cannot be started (on a full disk, say); that the first one cannot be is for the caller to know. One
 * that outlived an earlier agent is ended first.
 */
export function createEnvoySupervisor(options: SupervisorOptions): EnvoySupervisor {
  const { clock, log, adminPort, pidFile } = options;
  const backOff = new BackOff({ firstMs: 200, mostMs: 30_000 });
  // Before it is, who answers on the admin port is one that outlived an earlier agent.
  let isOwn = false;
  return {
    async run(stop, now) {
      await endOrphan(pidFile, clock, log);
      while (!stop.aborted) {
        const startedAt = clock.monotonic();
        const process = await options.start().catch(async (error: unknown) => {
          if (stop.aborted) return undefined;
          if (!isOwn) throw error;
          const delay = backOff.next();
          log.error({ reason: messageOf(error), restartMs: Math.round(delay) }, "Envoy cannot be started again; that is tried later");
          await clock.sleep(delay, stop).catch(() => {});
          return undefined;
        });
        if (process === undefined) continue;
        isOwn = true;
        await remember(process, options);
        const stopping = aborted(stop);
        const code = await Promise.race([process.exited.then((status) => ({ status })), stopping]);
        if (code === undefined) {
          await drain(process, options, now);
          break;
        }
        if (clock.monotonic() - startedAt > STEADY_MS) backOff.reset();
        const delay = backOff.next();
        const how = process.killedBy ? { signal: process.killedBy } : { status: code.status };
        log.error({ ...how, restartMs: Math.round(delay) }, "Envoy ended by itself and is started again");
        await clock.sleep(delay, stop).catch(() => {});
      }
      await rm(pidFile, { force: true });
    },
    ready: async () =>
      isOwn &&
      askAdmin(adminPort, "/ready").then(
        (text) => text.startsWith("LIVE"),
        () => false,
      ),
  };
}

/** A disk that is full must not cost the Envoy that runs: only one who comes after this process would miss its number. */
const remember = ({ pid }: EnvoyProcess, { pidFile, log }: SupervisorOptions): Promise<void> =>
  writeFile(pidFile, String(pid ?? ""), { mode: 0o600 }).catch((error: unknown) =>
    log.warn({ file: pidFile, reason: messageOf(error) }, "the number of the running Envoy cannot be kept"),
  );

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });

/**
 * Asks clients to go (`Connection: close`, GOAWAY) and takes connections of those who do not know yet until `drainDuration` is over, then no new ones; lets
 * those that are open end, then ends it. One deadline for all of it.
 */
async function drain(process: EnvoyProcess, { drain: plan, adminPort, clock, log }: SupervisorOptions, now: AbortSignal): Promise<void> {
  const post = (path: string): Promise<string> => askAdmin(adminPort, path, "POST");
  try {
    if (now.aborted) return;
    await post("/healthcheck/fail");
    await post(`/drain_listeners?${plan.inboundOnly ? "inboundonly&" : ""}graceful`);
    if (plan.untilIdle === undefined) log.info({ ms: plan.forMs }, "Envoy is drained for a while and then ended");
    else log.info("Envoy is drained, and ended when no client is connected any more");
    const gone = process.exited.then(() => {});
    await Promise.race([
      gone,
      plan.untilIdle === undefined ? clock.sleep(plan.forMs, now) : untilIdle(plan.untilIdle, { adminPort, clock, now, log }),
    ]);
  } catch (error) {
    if (!now.aborted) log.warn({ reason: messageOf(error) }, "Envoy could not be drained and is ended");
  } finally {
    await process.stop();
  }
}

interface IdleDeps {
  readonly adminPort: number;
  readonly clock: Clock;
  readonly now: AbortSignal;
  readonly log: Log;
}

async function untilIdle(plan: NonNullable<DrainPlan["untilIdle"]>, { adminPort, clock, now, log }: IdleDeps): Promise<void> {
  const end = clock.monotonic() + LONGEST_DRAIN_MS;
  // One that is too busy to say serves clients still.
  const connections = async (): Promise<number | "unknown"> =>
    askAdmin(adminPort, "/stats?filter=downstream_cx_active$").then(
      (stats) => activeConnections(stats, plan.ignoredPorts),
      () => "unknown",
    );
  await clock.sleep(plan.leastMs, now);
  for (;;) {
    const left = await connections();
    if (left === 0) return;
    if (clock.monotonic() >= end)
      return log.warn({ connections: left }, "clients are connected still, but Envoy is ended: it was drained for long enough");
    await clock.sleep(LOOK_MS, now);
  }
}

type ObservedPort = "envoyStatusPort" | "envoyPrometheusPort" | "secureMetricsPort" | "secureMergedMetricsPort";

/** Ports on which a proxy is looked at: who calls there is no client of the workload. */
export const observedPorts = (settings: Pick<AgentSettings, ObservedPort>): readonly number[] =>
  [settings.envoyStatusPort, settings.envoyPrometheusPort, settings.secureMetricsPort, settings.secureMergedMetricsPort].filter(
    (port) => port !== 0,
  );

const ACTIVE = /^listener\.(.+)\.downstream_cx_active: (\d+)$/;

/** Connections of clients; those of probes and scrapers do not count. */
export function activeConnections(stats: string, ignoredPorts: readonly number[]): number {
  return stats.split("\n").reduce((sum, line) => {
    const [, listener = "", count = "0"] = ACTIVE.exec(line) ?? [];
    const ignored =
      listener.startsWith("admin") || listener.includes("worker_") || ignoredPorts.some((port) => listener.endsWith(`_${port}`));
    return ignored ? sum : sum + Number(count);
  }, 0);
}

/** Ends an Envoy that outlived the agent which started it: it holds the ports of the next one. */
async function endOrphan(pidFile: string, clock: Clock, log: Log): Promise<void> {
  const pid = Number((await readFile(pidFile, "utf8").catch(() => "")).trim());
  if (!Number.isInteger(pid) || pid <= 1 || !(await isOurs(pid, pidFile))) return;
  log.info({ pid }, "an Envoy that outlived its agent is ended");
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    send(pid, signal);
    for (let looks = 0; looks < 100; looks++) {
      if (!(await isOurs(pid, pidFile))) return;
      await clock.sleep(50);
    }
  }
}

/** The process has that number and was started with the bootstrap beside the file; a number may have been given to another since. */
async function isOurs(pid: number, pidFile: string): Promise<boolean> {
  const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
  const directory = pidFile.slice(0, pidFile.lastIndexOf("/") + 1);
  return words.some((word) => word.startsWith(directory) && word.includes(".bootstrap."));
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It is gone.
  }
}
