import { createPeers, peerName } from "../metrics/peers.ts";
import { createStandardMetrics } from "../metrics/standard-metrics.ts";
import { nodeFacts } from "../metrics/workload-facts.ts";
import type { AgentContext, AgentPart } from "../parts.ts";
import { readAppProbes } from "./app-probes.ts";
import { createMergedMetrics } from "./merged-metrics.ts";
import { probeTarget } from "./probe-target.ts";
import { runProbe } from "./run-probe.ts";
import { readScrapeTargets, type ScrapePlan } from "./scrape-config.ts";

const PAGES = ["/stats/prometheus", "/metrics"] as const;

/** What 15020 has besides readiness: probes of the application, and metrics of agent, Envoy and application on one page. */
export const statusPages: AgentPart = (context) => {
  addProbes(context);
  addMetrics(context);
};

function addProbes(context: AgentContext): void {
  const { config, routes } = context;
  const target = probeTarget(context);
  for (const [path, probe] of readAppProbes(config.settings.appProbers))
    routes.push({
      path,
      async handle(request, response) {
        const { status, body } = await runProbe(probe, target, request.headers);
        response.writeHead(status, { "content-type": "text/plain" }).end(body);
      },
    });
}

function addMetrics({ config, node, clock, log, routes, metrics, identity, subscriptions, say }: AgentContext): void {
  const { settings, proxy } = config;
  const ownPorts = { status: proxy.statusPort, others: [proxy.adminPort, settings.envoyPrometheusPort, settings.envoyStatusPort] };
  // A gateway's port may be reached from outside, and it has no application.
  const application: ScrapePlan = config.type === "sidecar" ? readScrapeTargets(settings.prometheusAnnotations, ownPorts) : { targets: [] };
  if (application.leftOut !== undefined)
    log.warn(
      { port: application.leftOut },
      "prometheus.io/port names a port of the proxy: the proxy's metrics are merged anyway, the application's are not known",
    );
  const envoy = { port: settings.envoyPrometheusPort || proxy.adminPort, path: "/stats/prometheus" };
  const peers = createPeers({ clock, say });
  subscriptions.push(peers.subscription);
  const self = {
    name: peerName({ namespace: settings.podNamespace, account: settings.serviceAccount }, node.id.split("~")[1] ?? ""),
    facts: nodeFacts(node.metadata),
    get principal() {
      const [, signed] = /URI:(spiffe:[^,\s]+)/.exec(identity.current?.name ?? "") ?? [];
      return signed ?? `spiffe://${settings.trustDomain}/ns/${settings.podNamespace}/sa/${settings.serviceAccount}`;
    },
  };
  const standard = createStandardMetrics({ peers, self });
  const merged = createMergedMetrics({
    envoy: settings.disableEnvoy || !settings.mergeEnvoyStats ? undefined : envoy,
    application: application.targets,
    metrics,
    standard,
    clock,
    log,
  });
  metrics.push(
    { name: "scrapes_total", type: "counter", values: () => [{ value: merged.counts.scrapes }] },
    {
      name: "scrape_failures_total",
      type: "counter",
      values: () => Object.entries(merged.counts.failures).map(([type, value]) => ({ labels: { type }, value })),
    },
    {
      name: "cert_expiry_seconds",
      type: "gauge",
      values: () =>
        identity.current === undefined
          ? []
          : [{ labels: { resource_name: "default" }, value: (identity.current.endsAt - clock.now()) / 1_000 }],
    },
    { name: "metric_peers_beyond_limit", type: "gauge", values: () => [{ value: peers.refused }] },
    { name: "metric_series_beyond_limit_total", type: "counter", values: () => [{ value: standard.beyond }] },
    { name: "process_resident_memory_bytes", type: "gauge", values: () => [{ value: process.memoryUsage.rss() }] },
    { name: "process_cpu_seconds_total", type: "counter", values: () => [{ value: cpuSeconds() }] },
  );
  for (const path of PAGES) routes.push({ path, ...(settings.metricsLocalOnly && { local: true }), handle: merged.handle });
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
