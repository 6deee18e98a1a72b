import { defineInputs, type Inputs } from "../config/inputs.ts";
import { createEngine, type Engine, type EngineOptions, type Query } from "../engine/index.ts";
import type { ProxyView } from "../model/proxy.ts";
import { createRegistry } from "../registry/create-registry.ts";
import type { ResourceProvider } from "../xds/provider.ts";
import { createClusterProvider } from "./clusters/cluster-provider.ts";
import type { GenerateContext, GenerateSettings } from "./context.ts";
import { createEndpointProvider } from "./endpoints/endpoint-provider.ts";
import { createWasmProvider } from "./extensions/wasm-provider.ts";
import { createListenerProvider } from "./listeners/provider.ts";
import { createLookups } from "./lookups/lookups.ts";
import { createExtensionProvider } from "./patches/extension-provider.ts";
import type { LeftOut } from "./patches/patched-kind.ts";
import { patchedProvider } from "./patches/patched-provider.ts";
import { createPatches, type Patches } from "./patches/patches.ts";
import { type PatchReport, type ReportedProxy, reportPatches } from "./patches/report.ts";
import { defineProxyView, type NodeFacts } from "./proxy-view.ts";
import { createRouteProvider } from "./routes/provider.ts";

/** Everything between validated inputs and encoded resources, put together on one engine. Holds no sockets and reads no files. */
export interface World {
  readonly engine: Engine;
  readonly inputs: Inputs;
  readonly context: GenerateContext;
  readonly view: Query<NodeFacts, ProxyView>;
  /** In the order in which a proxy needs them: make before break. */
  readonly providers: readonly ResourceProvider[];
  /** EnvoyFilters. Their descriptors must be given (`use`) before a proxy is served while one is in force. */
  readonly patches: Patches;
  /** What each patch of each EnvoyFilter does at some proxies. */
  patchReport(proxies: readonly ReportedProxy[]): readonly PatchReport[];
}

export interface WorldOptions extends EngineOptions {
  /** Told of each patch of an EnvoyFilter that is left out of a resource, when that is found. */
  readonly patchLeftOut?: (fault: LeftOut) => void;
}

export function createWorld(settings: GenerateSettings, options: WorldOptions = {}): World {
  const engine = createEngine(options);
  const inputs = defineInputs(engine);
  const registry = createRegistry(engine, inputs, {
    clusterId: settings.clusterId,
    clusterDomain: settings.clusterDomain,
    autoAddressRanges: settings.autoAddressRanges,
  });
  const base = { engine, inputs, registry, settings };
  const context: GenerateContext = { ...base, lookups: createLookups(base) };
  const patches = createPatches(context, options.patchLeftOut);
  const { plans } = patches;
  const clusters = patchedProvider(createClusterProvider(context), patches.clusters, plans);
  const listeners = patchedProvider(createListenerProvider(context), patches.listeners, plans);
  const routes = patchedProvider(createRouteProvider(context), patches.routes, plans);
  const extensions = createExtensionProvider(patches, createWasmProvider(context));
  return {
    engine,
    inputs,
    context,
    view: defineProxyView(context),
    providers: [clusters.provider, createEndpointProvider(context), listeners.provider, routes.provider, extensions.provider],
    patches,
    patchReport: (proxies) => reportPatches(patches, [clusters, listeners, routes, extensions], proxies),
  };
}
