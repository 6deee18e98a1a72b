import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { type Clock, systemClock } from "../base/clock.ts";
import type { StatusMetrics } from "../config/status/object-report.ts";
import type { WithheldSecret } from "../generate/secrets/secret-provider.ts";
import type { RegistrationEvent } from "../sources/registered/registered-workloads.ts";
import type { WebhookMetrics } from "../webhooks/webhook-metrics.ts";
import { shortTypeName } from "../wire/type-urls.ts";
import type { XdsMetrics } from "../xds/metrics.ts";
import type { ServerLoad } from "../xds/server.ts";
import { collectedGauge } from "./collected-gauge.ts";
import { type IdentityMetrics, identityMetrics } from "./identity-metrics.ts";
import { keyFetchMetrics } from "./key-fetch-metrics.ts";
import { watchLoopLag } from "./loop-lag.ts";
import type { MemoryState } from "./memory-watch.ts";
import { observeLoad, overloadMetrics } from "./overload-metrics.ts";
import type { PatchStatus } from "./patch-metrics.ts";
import { QuickHistogram } from "./quick-histogram.ts";
import { registrationMetrics } from "./registration-metrics.ts";
import { statusMetrics } from "./status-metrics.ts";
import { webhookMetrics } from "./webhook-metrics.ts";

/** Everything the control plane counts, under Istio's names, so that existing dashboards work. */
export interface ControlPlaneMetrics {
  readonly xds: XdsMetrics;
  readonly identity: IdentityMetrics;
  readonly webhooks: WebhookMetrics;
  readonly status: StatusMetrics;
  /** A workload outside Kubernetes came or went. */
  registration(event: RegistrationEvent): void;
  /** Keys of a token issuer were asked for: whether they came. */
  readonly keyFetch: (came: boolean) => void;
  configEvents(kind: string, event: "add" | "update" | "delete", count: number): void;
  rejectedConfig(total: number): void;
  /** A proxy asked for a secret and is not given it. */
  secretWithheld(reason: WithheldSecret["why"]): void;
  /** Numbers that are looked up when somebody asks. */
  observe(source: GaugeSource): void;
  /** What is in hand, and how much memory there is for it. */
  observeLoad(load: () => ServerLoad, memory: () => MemoryState): void;
  text(): Promise<string>;
  readonly contentType: string;
}

export interface GaugeSource {
  readonly services: () => number;
  readonly virtualServices: () => number;
  readonly engine: () => { readonly nodes: number; readonly edges: number; readonly inputs: number };
  /** By type URL. */
  readonly sharing: () => ReadonlyMap<string, { readonly classes: number; readonly bytes: number }>;
  readonly meshReloadFailed: () => boolean;
  readonly sourcesFailed: () => number;
  /** What patches of EnvoyFilters do; undefined where nobody wants to know. */
  readonly patches: (() => Promise<readonly PatchStatus[]>) | undefined;
}

const SECONDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30];
const BYTES = [1, 10_000, 1_000_000, 4_000_000, 10_000_000, 40_000_000];

/** Makes prom-client's own watch of the event loop never look: `watchLoopLag` does. */
const NEVER_MS = 2 ** 31 - 1;

/** All metrics of one control plane, in a registry of their own. docs/observing.md tells of each. */
export function createMetrics(version: string, clock: Clock = systemClock): ControlPlaneMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  watchLoopLag(registry, clock);
  const own = { registers: [registry] };
  new Gauge({ ...own, name: "pilot_info", help: "Version of Istio whose API is served.", labelNames: ["version"] }).set({ version }, 1);
  new Gauge({
    ...own,
    name: "istio_build",
    help: "Version of Istio whose API is served, by component.",
    labelNames: ["component", "tag"],
  }).set({ component: "pilot", tag: version }, 1);
  const k8sEvents = new Counter({
    ...own,
    name: "pilot_k8s_cfg_events",
    help: "Configuration events by kind.",
    labelNames: ["type", "event"],
  });
  const rejected = new Gauge({ ...own, name: "pilot_total_rejected_configs", help: "Objects that are left out because they are invalid." });
  const secrets = new Counter({
    ...own,
    name: "pilot_sds_certificate_errors_total",
    help: "Secrets that proxies asked for in vain, by reason.",
    labelNames: ["reason"],
  });
  return {
    xds: xdsMetrics(registry, version),
    identity: identityMetrics(registry),
    webhooks: webhookMetrics(registry),
    status: statusMetrics(registry),
    registration: registrationMetrics(registry),
    keyFetch: keyFetchMetrics(registry),
    configEvents: (kind, event, count) => k8sEvents.inc({ type: kind, event }, count),
    rejectedConfig: (total) => rejected.set(total),
    secretWithheld: (reason) => secrets.inc({ reason }),
    observe: (source) => observeGauges(registry, source),
    observeLoad: (load, memory) => observeLoad(registry, load, memory),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

function xdsMetrics(registry: Registry, version: string): XdsMetrics {
  const own = { registers: [registry] };
  const streams = new Gauge({ ...own, name: "pilot_xds", help: "Proxies connected over xDS.", labelNames: ["version"] });
  const convergence = new QuickHistogram({
    ...own,
    name: "pilot_proxy_convergence_time",
    help: "Seconds from a push to a proxy's last acknowledgement.",
    buckets: SECONDS,
  });
  const triggers = new Counter({ ...own, name: "pilot_push_triggers", help: "Pushes by what caused them.", labelNames: ["type"] });
  const confirmed = new Counter({
    ...own,
    name: "istiod_xds_confirmed_total",
    help: "Types of which proxies held after a restart what they would be offered, known without working it out.",
  });
  const internal = new Counter({ ...own, name: "pilot_total_xds_internal_errors", help: "Resources a generator failed to make." });
  return {
    streams: (open) => streams.set({ version }, open),
    ...responseMetrics(registry),
    ...answerMetrics(registry),
    confirmed: () => confirmed.inc(),
    ...overloadMetrics(registry),
    triggered: (cause) => triggers.inc({ type: cause }),
    converged: (ms) => convergence.add(ms / 1000),
    internalError: () => internal.inc(),
  };
}

/** What is sent. */
function responseMetrics(registry: Registry): Pick<XdsMetrics, "sent" | "flushed" | "writeTimeout"> {
  const own = { registers: [registry] };
  const size = new QuickHistogram({
    ...own,
    name: "pilot_xds_config_size_bytes",
    help: "Size of responses, by type.",
    labelNames: ["type"],
    buckets: BYTES,
  });
  new Counter({
    ...own,
    name: "pilot_xds_pushes",
    help: "Responses sent, by type.",
    labelNames: ["type"],
    collect() {
      this.reset();
      for (const [type, count] of size.totals()) this.inc({ type }, count);
    },
  });
  const pushTime = new QuickHistogram({
    ...own,
    name: "pilot_xds_push_time",
    help: "Seconds to work out a response, by type.",
    labelNames: ["type"],
    buckets: SECONDS,
  });
  const sendTime = new QuickHistogram({
    ...own,
    name: "pilot_xds_send_time",
    help: "Seconds until the network took a response.",
    buckets: SECONDS,
  });
  const writeTimeouts = new Counter({ ...own, name: "pilot_xds_write_timeout", help: "Streams that were cut because they did not read." });
  const greetings = new Counter({
    ...own,
    name: "istiod_xds_greetings_total",
    help: "Responses without content, to proxies that came back and needed nothing.",
  });
  return {
    sent({ typeUrl, bytes, isGreeting, ms }) {
      if (isGreeting) {
        greetings.inc();
        return;
      }
      const type = shortTypeName(typeUrl);
      size.add(bytes, type);
      pushTime.add(ms / 1000, type);
    },
    flushed: (_typeUrl, ms) => sendTime.add(ms / 1000),
    writeTimeout: () => writeTimeouts.inc(),
  };
}

/** What proxies answer. A proxy that refused something has a series of its own for as long as it is connected: there are never more than proxies. */
function answerMetrics(registry: Registry): Pick<XdsMetrics, "acknowledged" | "rejected" | "left" | "expiredNonce"> {
  const own = { registers: [registry] };
  const rejects = new Counter({
    ...own,
    name: "pilot_total_xds_rejects",
    help: "Responses a proxy refused, by type.",
    labelNames: ["type"],
  });
  const rejectsOf = new Map(
    ["cds", "eds", "lds", "rds"].map((type) => [
      type,
      new Counter({ ...own, name: `pilot_xds_${type}_reject`, help: `Refused ${type.toUpperCase()} responses.`, labelNames: ["node"] }),
    ]),
  );
  const expired = new Counter({
    ...own,
    name: "pilot_xds_expired_nonce",
    help: "Answers to responses that were replaced meanwhile.",
    labelNames: ["type"],
  });
  const refusing = new Set<string>();
  return {
    acknowledged: () => {},
    rejected(typeUrl, node) {
      const type = shortTypeName(typeUrl);
      rejects.inc({ type });
      rejectsOf.get(type)?.inc({ node });
      refusing.add(node);
    },
    left(node) {
      if (refusing.delete(node)) for (const counter of rejectsOf.values()) counter.remove({ node });
    },
    expiredNonce: (typeUrl) => expired.inc({ type: shortTypeName(typeUrl) }),
  };
}

function observeGauges(registry: Registry, source: GaugeSource): void {
  const gauge = (name: string, help: string, read: () => number): void => collectedGauge(registry, name, { help, read });
  gauge("pilot_services", "Services known.", source.services);
  gauge("pilot_virt_services", "VirtualServices known.", source.virtualServices);
  observeEngine(registry, source);
  observeSharing(registry, source);
  gauge("istiod_mesh_reload_failed", "1 while mesh.yaml is wrong and the last good one is in force.", () =>
    Number(source.meshReloadFailed()),
  );
  const { patches } = source;
  if (patches !== undefined) {
    new Gauge({
      name: "pilot_envoy_filter_status",
      help: "Whether patches of an EnvoyFilter are applied, and whether some are left out.",
      labelNames: ["name", "patch", "result"],
      registers: [registry],
      async collect() {
        const found = await patches();
        this.reset();
        for (const { value, ...labels } of found) this.set(labels, value);
      },
    });
  }
  gauge("istiod_config_sources_failed", "Configuration sources that cannot be read at present.", source.sourcesFailed);
}

/** All are counted together, when the first is asked for. */
function observeEngine(registry: Registry, { engine }: GaugeSource): void {
  const own = { registers: [registry] };
  new Gauge({
    ...own,
    name: "istiod_engine_nodes",
    help: "Query results kept.",
    collect() {
      const stats = engine();
      this.set(stats.nodes);
      edges.set(stats.edges);
      inputs.set(stats.inputs);
    },
  });
  const edges = new Gauge({ ...own, name: "istiod_engine_edges", help: "Recorded reads between results." });
  const inputs = new Gauge({ ...own, name: "istiod_engine_inputs", help: "Input rows." });
}

/** The same. */
function observeSharing(registry: Registry, { sharing }: GaugeSource): void {
  const own = { registers: [registry], labelNames: ["type"] };
  new Gauge({
    ...own,
    name: "istiod_xds_classes",
    help: "Distinct sets of resources that connected proxies are offered, by type.",
    collect() {
      for (const [typeUrl, { classes, bytes }] of sharing()) {
        this.set({ type: shortTypeName(typeUrl) }, classes);
        sizes.set({ type: shortTypeName(typeUrl) }, bytes);
      }
    },
  });
  const sizes = new Gauge({ ...own, name: "istiod_xds_resource_bytes", help: "Bytes of the distinct resources in those sets, by type." });
}
