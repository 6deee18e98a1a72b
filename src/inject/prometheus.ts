import { ANNOTATION, parseFlag } from "./annotations.ts";
import { findProxy, type Pod } from "./pod.ts";

const SCRAPE = "prometheus_io_scrape";
const PORT = "prometheus_io_port";
const PATH = "prometheus_io_path";
const TARGETS = "prometheus_istio_io_scrape_targets";
const SECURE_PORT = "prometheus_istio_io_secure_port";
const CLEARED: readonly string[] = [SCRAPE, PORT, PATH, TARGETS];

/** Ports of the proxy and its agent: scraping them through the agent would count everything twice, or never end. */
const RESERVED: readonly number[] = [15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090];

/** Prometheus takes `prometheus.io/port`, `prometheus.io.port` and `prometheus-io/port` for the same. */
const sanitized = (name: string): string => name.replace(/[^a-zA-Z0-9_]/g, "_");

const entryOf = ({ metadata }: Pod, name: string): string | undefined =>
  Object.entries(metadata.annotations ?? {}).find(([key]) => sanitized(key) === name)?.[1];

/** The port that a pod's annotations tell Prometheus to scrape; separators in their names do not matter. */
export const scrapePort = (pod: Pod): string | undefined => entryOf(pod, PORT);

/** Takes away what tells Prometheus where to scrape, however it is spelt. Changes the pod. */
export function clearScrapeAnnotations({ metadata }: Pod): void {
  for (const key of Object.keys(metadata.annotations ?? {})) if (CLEARED.includes(sanitized(key))) delete metadata.annotations?.[key];
}

/**
 * Points Prometheus at the agent, which gives the application's metrics and the proxy's in one page; where the application's are is told to the
 * agent instead. Changes the pod; gives what is wrong with the annotations, if anything.
 */
export function mergeMetrics(pod: Pod, options: { readonly isOn: boolean; readonly agentPort: string }): string | undefined {
  const { annotations = {} } = pod.metadata;
  const wanted = parseFlag(annotations[ANNOTATION.mergeMetrics] ?? "") ?? options.isOn;
  const isScraped = parseFlag(entryOf(pod, SCRAPE) ?? "") ?? true;
  if (!wanted || !isScraped || scrapePort(pod) === options.agentPort) return undefined;
  const targets = targetsOf(entryOf(pod, TARGETS));
  if (typeof targets === "string") return targets;
  const [first] = targets;
  const port = first?.port ?? scrapePort(pod) ?? "";
  const ports = first === undefined ? (port === "" ? [] : [port]) : targets.map((target) => target.port);
  for (const one of ports) {
    const fault = portFault(one, options.agentPort);
    if (fault !== undefined) return fault;
  }
  const scrape = { scrape: entryOf(pod, SCRAPE) ?? "", path: first?.path ?? entryOf(pod, PATH) ?? "", port };
  const isEmpty = targets.length === 0 && Object.values(scrape).every((value) => value === "");
  const proxy = findProxy(pod);
  if (proxy !== undefined && !isEmpty) {
    const value = JSON.stringify({ ...scrape, ...(targets.length > 0 && { targets }) });
    proxy.env = [...(proxy.env ?? []), { name: "ISTIO_PROMETHEUS_ANNOTATIONS", value }];
  }
  clearScrapeAnnotations(pod);
  pod.metadata.annotations = {
    ...pod.metadata.annotations,
    "prometheus.io/port": options.agentPort,
    "prometheus.io/path": "/stats/prometheus",
    "prometheus.io/scrape": "true",
  };
  return undefined;
}

/** Tells Prometheus of the page over mutual TLS where ProxyConfig has switched one on, and the user has not said anything. */
export function announceSecurePort(pod: Pod): void {
  if (entryOf(pod, SECURE_PORT) !== undefined) return;
  const port = findProxy(pod)?.env?.find(({ name }) => name === "ENVOY_SECURE_MERGED_METRICS_PORT")?.value ?? "";
  if (port !== "" && port !== "0") pod.metadata.annotations = { ...pod.metadata.annotations, [ANNOTATION.securePort]: port };
}

interface Target {
  readonly port: string;
  readonly path: string;
}

/** `8080:/metrics,9100`, or what is wrong with it. */
function targetsOf(text: string | undefined): readonly Target[] | string {
  const entries = (text ?? "").split(",").map((entry) => entry.trim());
  const targets: Target[] = [];
  for (const entry of entries.filter((one) => one !== "")) {
    const colon = entry.indexOf(":");
    const port = (colon === -1 ? entry : entry.slice(0, colon)).trim();
    if (port === "") return `annotation prometheus.istio.io/scrape-targets: ${JSON.stringify(entry)} has no port`;
    targets.push({ port, path: (colon === -1 ? "" : entry.slice(colon + 1).trim()) || "/metrics" });
  }
  return targets;
}

function portFault(port: string, agentPort: string): string | undefined {
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  if (number < 1 || number > 65_535) return `metrics cannot be scraped: ${JSON.stringify(port)} is not a port`;
  if (String(number) === agentPort || RESERVED.includes(number))
    return `metrics cannot be scraped from port ${port}: it is the proxy's or its agent's, not the application's`;
  return undefined;
}
