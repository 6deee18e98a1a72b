import { join } from "node:path";
import { BackOff } from "../../base/back-off.ts";
import { rangesIn } from "../../base/blocked-address.ts";
import { EdgeError, messageOf } from "../../base/errors.ts";
import { bodyOfResource, type DeltaResource } from "../../wire/delta-frames.ts";
import { rewriteFields } from "../../wire/rewrite-fields.ts";
import { EXTENSION_CONFIG_TYPE } from "../../wire/type-urls.ts";
import type { AgentContext, AgentPart } from "../parts.ts";
import type { AgentMetric } from "../status/agent-metrics.ts";
import { Histogram } from "../status/histogram.ts";
import type { SendLater } from "../xds/uplink.ts";
import { findModule } from "./fetch-module.ts";
import { type ModuleStore, openModuleStore } from "./module-store.ts";
import { type RemoteModule, readRemoteModule, standIn, withLocalModule } from "./remote-module.ts";

/** Milliseconds, as Istio counts them: 1 up to 16384. */
const DURATION_BOUNDS = Array.from({ length: 15 }, (_, power) => 2 ** power);

/** `resources` of a `DeltaDiscoveryResponse`. */
const RESOURCES = 2;

/** What became of modules, as Istio counts it. */
interface Counts {
  readonly lookups: Record<"true" | "false", number>;
  readonly fetches: Record<"success" | "download_failure" | "checksum_mismatched", number>;
  readonly conversions: Record<"success" | "no_remote_load" | "fetch_failure", number>;
}

/**
 * Fetches Wasm modules that configuration names by URL, and tells Envoy the files they are in. While a module cannot be had, a filter stands in for it
 * that lets all through or nothing, as the module's own word on failures is; it is asked for again until it comes.
 */
export const wasmModules: AgentPart = async (context) => {
  const { config, clock, filters, metrics, signal } = context;
  const { settings } = config;
  const counts: Counts = {
    lookups: { true: 0, false: 0 },
    fetches: { success: 0, download_failure: 0, checksum_mismatched: 0 },
    conversions: { success: 0, no_remote_load: 0, fetch_failure: 0 },
  };
  const durations = new Histogram(DURATION_BOUNDS);
  const insecureHosts = new Set(settings.wasmInsecureRegistries.split(",").map((host) => host.trim()));
  const blockedRanges = rangesIn(settings.wasmBlockedRanges);
  if (typeof blockedRanges === "string")
    throw new EdgeError("usage", `BLOCKED_CIDRS_IN_WASM_FETCH: ${JSON.stringify(blockedRanges)} is not a range of addresses`);
  const { wasmAttempts: attempts, wasmMostBytes: mostBytes } = settings;
  const options = { env: config.env, attempts, mostBytes, insecureHosts, blockedRanges, proxies: settings, clock };
  // Made with the first module: most proxies have none.
  let opening: Promise<ModuleStore> | undefined;
  let size = 0;
  const store = (): Promise<ModuleStore> => {
    opening ??= openModuleStore({
      directory: join(config.paths.lastGood, "../wasm"),
      expiryMs: settings.wasmExpiryMs,
      clock,
      find: (module, until) => findModule(module, until, options),
      note: (event) => noteEvent(counts, event),
    });
    return opening;
  };
  const modules = createModules(context, {
    async file(resource, module) {
      const opened = await store();
      try {
        return await opened.file(resource, module);
      } finally {
        size = opened.size;
      }
    },
    forget: (resource) => void opening?.then((opened) => opened.forget(resource)),
    counts,
  });
  filters.set(EXTENSION_CONFIG_TYPE, async ({ resources, removed }, bytes, later) => {
    for (const name of removed) modules.forget(name);
    const began = clock.monotonic();
    const changed = (await Promise.all(resources.map((resource) => modules.change(resource, later)))).values();
    durations.observe(clock.monotonic() - began);
    return rewriteFields(bytes, (field, part) => (field === RESOURCES ? changed.next().value : part));
  });
  const purge = (): void => {
    if (signal.aborted) return;
    void opening?.then((opened) => opened.purge()).catch(() => {});
    clock.after(settings.wasmPurgeMs, purge);
  };
  clock.after(settings.wasmPurgeMs, purge);
  metrics.push(...moduleMetrics(counts, () => size), durations.metric("wasm_config_conversion_duration"));
};

function moduleMetrics(counts: Counts, entries: () => number): readonly AgentMetric[] {
  const labelled = (values: Readonly<Record<string, number>>, label: string) => () =>
    Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));
  return [
    { name: "wasm_cache_entries", type: "gauge", values: () => [{ value: entries() }] },
    { name: "wasm_cache_lookup_count", type: "counter", values: labelled(counts.lookups, "hit") },
    { name: "wasm_remote_fetch_count", type: "counter", values: labelled(counts.fetches, "result") },
    { name: "wasm_config_conversion_count", type: "counter", values: labelled(counts.conversions, "result") },
  ];
}

function noteEvent({ lookups, fetches }: Counts, event: Parameters<Parameters<typeof openModuleStore>[0]["note"]>[0]): void {
  if (event === "hit") lookups.true += 1;
  else if (event === "miss") lookups.false += 1;
  else if (event === "success") fetches.success += 1;
  else if (event === "checksum") fetches.checksum_mismatched += 1;
  else fetches.download_failure += 1;
}

interface ModuleOptions extends Pick<ModuleStore, "file" | "forget"> {
  readonly counts: Counts;
}

interface Modules {
  /** The resource as Envoy is to have it. Never rejects. */
  change(resource: DeltaResource, later: SendLater): Promise<Uint8Array>;
  forget(name: string): void;
}

/** How a stand-in's version differs from that of what it stands for: who connects anew is sent the real one again. */
const WITHOUT = "-without-module";

function createModules({ clock, log, signal }: AgentContext, { file, forget, counts }: ModuleOptions): Modules {
  /** The resource of each name that counts now: an older one is not asked for any more. */
  const current = new Map<string, DeltaResource>();
  const fetched = async (resource: DeltaResource, module: RemoteModule): Promise<Uint8Array> => {
    const local = await file(resource.name, module);
    counts.conversions.success += 1;
    return withConfig(resource.bytes, (config) => withLocalModule(config, local));
  };
  const goOn = async (resource: DeltaResource, module: RemoteModule, later: SendLater): Promise<void> => {
    const backOff = new BackOff({ firstMs: 1_000, mostMs: 5 * 60_000 });
    for (;;) {
      await clock.sleep(backOff.next(), signal);
      if (current.get(resource.name) !== resource) return;
      const bytes = await fetched(resource, module).catch(() => undefined);
      if (bytes === undefined) continue;
      if (current.get(resource.name) !== resource) return;
      log.info({ extension: resource.name }, "its module has come");
      return later([bytes]);
    }
  };
  return {
    async change(resource, later) {
      current.set(resource.name, resource);
      let module: RemoteModule | undefined;
      try {
        module = readRemoteModule(bodyOfResource(resource.bytes));
        if (module !== undefined) return await fetched(resource, module);
        counts.conversions.no_remote_load += 1;
        return resource.bytes;
      } catch (error) {
        const { filter, failOpen, url } = module ?? { filter: "http" as const, failOpen: false, url: "" };
        counts.conversions.fetch_failure += 1;
        const effect = failOpen ? "requests pass without it" : "nothing passes";
        log.error({ extension: resource.name, url, reason: messageOf(error) }, `a Wasm module cannot be had; ${effect}`);
        if (module !== undefined) void goOn(resource, module, later).catch(() => {});
        return withVersion(
          withConfig(resource.bytes, (config) => standIn(config, { filter, failOpen })),
          WITHOUT,
        );
      }
    },
    forget(name) {
      current.delete(name);
      forget(name);
    },
  };
}

/** Changes the configuration inside a serialized `Resource` (version 1, resource 2). */
const withConfig = (resource: Uint8Array, change: (config: Uint8Array) => Uint8Array): Uint8Array =>
  rewriteFields(resource, (field, any) =>
    field === 2 ? rewriteFields(any, (inner, value) => (inner === 2 ? change(value) : value)) : any,
  );

const withVersion = (resource: Uint8Array, ending: string): Uint8Array =>
  rewriteFields(resource, (field, content) => (field === 1 ? Buffer.concat([content, Buffer.from(ending)]) : content));
