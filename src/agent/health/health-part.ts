import { HEALTH_TYPE } from "../../wire/type-urls.ts";
import type { AgentContext, AgentPart } from "../parts.ts";
import { probeTarget } from "../status/probe-target.ts";
import { runProbe } from "../status/run-probe.ts";
import { watchHealth } from "./health-watch.ts";
import { type ReadinessProbe, readReadinessProbe } from "./readiness-probe.ts";
import { runCommand } from "./run-command.ts";

/** HTTP status that stands for any illness in a report; Istio's. */
const ILL = 500;

/** Said of a workload whose agent has been told to end. */
const GOES = "its proxy is drained and then ends";

/** How much of what an application says of its illness is passed on. */
const LONGEST_REASON = 256;

/**
 * Asks the workload regularly whether it is well and tells the control plane when that changes, and on each new stream: others stop calling a
 * workload that is ill, and one that is about to go while it is drained. Without a `readinessProbe` in ProxyConfig it does nothing.
 */
export const healthReports: AgentPart = (context) => {
  const probe = readReadinessProbe(context.config.proxy.given.readinessProbe);
  if (probe === undefined) return;
  const { clock, log, ending, signal, announcements, metrics } = context;
  const watch = watchHealth({
    probe,
    started: async () => (await unreadiness(context)) === undefined,
    ask: () => faultOf(probe, context),
    changed(fault) {
      if (fault === undefined) log.info("the workload is well");
      else log.warn({ reason: fault }, "the workload is not well; others are told not to call it");
      context.announce();
    },
    clock,
    signal,
  });
  announcements.push(() => {
    const { state } = watch;
    if (state === undefined) return undefined;
    const fault = ending.aborted ? GOES : state.fault;
    return { typeUrl: HEALTH_TYPE, ...(fault !== undefined && { error: { code: ILL, message: fault } }) };
  });
  ending.addEventListener("abort", context.announce, { once: true });
  metrics.push({
    name: "workload_healthy",
    type: "gauge",
    values: () => (watch.state === undefined ? [] : [{ value: watch.state.fault === undefined ? 1 : 0 }]),
  });
};

/** Why the Envoy before the workload is not ready, undefined where it is: who cannot be reached is not well either. */
async function unreadiness({ checks }: AgentContext): Promise<string | undefined> {
  for (const check of checks) {
    const reason = await check();
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** What is wrong with the workload, undefined where nothing is. */
async function faultOf({ method, host, timeoutMs }: ReadinessProbe, context: AgentContext): Promise<string | undefined> {
  const reason = await unreadiness(context);
  if (reason !== undefined) return reason;
  if (method.kind === "exec") return runCommand(method.command, timeoutMs, context.clock);
  const own = probeTarget(context);
  const target = host === undefined ? own : { ...own, host, from: undefined };
  const { status, body } = await runProbe({ ...method, timeoutMs }, target, { "user-agent": "istio-probe/1.0" });
  if (status >= 200 && status < 400) return undefined;
  const said = body.trim().slice(0, LONGEST_REASON);
  if (method.kind === "http") return `it answers with status ${status}${said === "" ? "" : `: ${said}`}`;
  return said === "" ? "it does not answer" : said;
}
