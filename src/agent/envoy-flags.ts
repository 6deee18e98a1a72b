import { readFile } from "node:fs/promises";
import { bracketed } from "../base/address.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { AgentConfig } from "./agent-config.ts";
import { type AgentProxyConfig, parseYaml } from "./proxy-config.ts";

/** Whether the workload has addresses, and none of IPv4. */
export const onlyIpv6 = ({ addresses }: Pick<AgentConfig, "addresses">): boolean =>
  addresses.length > 0 && addresses.every((address) => address.includes(":"));

/** Flags of Envoy's command line, as Istio's agent gives them. `proxy` is the ProxyConfig that counts. */
export async function envoyFlags(config: AgentConfig, proxy: AgentProxyConfig, log: Log): Promise<readonly string[]> {
  const { settings, env } = config;
  const threads = settings.concurrency || proxy.concurrency || settings.cpuLimit;
  const override = settings.bootstrapOverride === "" ? undefined : await readOverride(settings.bootstrapOverride, env.HOST_IP ?? "", log);
  return [
    ...(settings.skipDeprecatedLogs ? ["--skip-deprecated-logs"] : []),
    // Clients learn of the end as soon as it begins.
    ...["--drain-strategy", "immediate"],
    ...["--local-address-ip-version", onlyIpv6(config) ? "v6" : "v4"],
    // Envoy's own would keep lines of access logs for ten seconds.
    ...["--file-flush-interval-msec", String(proxy.fileFlushMs)],
    ...(proxy.fileFlushKb > 0 ? ["--file-flush-min-size-kb", String(proxy.fileFlushKb)] : []),
    ...(threads > 0 ? ["--concurrency", String(threads)] : []),
    ...(settings.proxyComponentLogLevel === "" ? [] : ["--component-log-level", settings.proxyComponentLogLevel]),
    ...(override === undefined ? [] : ["--config-yaml", override]),
  ];
}

/**
 * A bootstrap that stands over the other, as JSON (`sidecar.istio.io/bootstrapOverride` mounts one): Envoy merges the two. `$(HOST_IP)` in it is
 * the node's address. One that cannot be read is left out, as in Istio: the workload is to run.
 */
async function readOverride(file: string, hostIp: string, log: Log): Promise<string | undefined> {
  const host = bracketed(hostIp);
  try {
    const text = (await readFile(file, "utf8")).replaceAll("[$(HOST_IP)]", host).replaceAll("$(HOST_IP)", host);
    const value = await parseYaml(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("it is not an object");
    return JSON.stringify(withEviction(value));
  } catch (error) {
    log.warn({ file }, `ISTIO_BOOTSTRAP_OVERRIDE cannot be read and is left out: ${messageOf(error)}`);
    return undefined;
  }
}

const FLUSHES = ["stats_flush_interval", "statsFlushInterval"];
const EVICTIONS = ["stats_eviction_interval", "statsEvictionInterval"];
const EVICTION_MS = 600_000;

/** Envoy does not start where statistics are dropped at another time than at a flush: who sets the one without the other gets one that fits. */
function withEviction(bootstrap: object): object {
  const said = new Map<string, unknown>(Object.entries(bootstrap));
  const flush = FLUSHES.map((name) => said.get(name)).find((value) => value !== undefined);
  const flushMs = Math.round(Number.parseFloat(String(flush)) * 1_000);
  if (!(flushMs > 0) || EVICTIONS.some((name) => said.has(name))) return bootstrap;
  return { ...bootstrap, stats_eviction_interval: `${(Math.ceil(EVICTION_MS / flushMs) * flushMs) / 1_000}s` };
}
